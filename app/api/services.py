"""The use cases that the routes call, built once a process."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import cast

from flask import current_app

from app.services.cancel_request import CancelRequest
from app.services.countermeasures import Countermeasures, Timeouts
from app.services.documents import Documents
from app.services.edit_user import EditUser
from app.services.filter_routes import FilterRoutes
from app.services.key_limits import KeyLimits
from app.services.list_models import ListModels
from app.services.live_figures import HordeFigures, ServiceFigures
from app.services.modes import Modes
from app.services.online import OnlineWorkers
from app.services.passkeys import Passkeys
from app.services.performance import Performance
from app.services.pop import Pop
from app.services.progress import PostProgress, RestoreLease
from app.services.queue_info import QueueInfo
from app.services.rate_limits import RateLimits
from app.services.readiness import readiness
from app.services.registration import Register
from app.services.release_job import ReleaseJob
from app.services.reports import Reports
from app.services.request_status import ReadStatus, Statuses
from app.services.requirement_classes import RequirementClasses
from app.services.runtime import Runtime
from app.services.shared_keys import SharedKeys
from app.services.statistics import Statistics
from app.services.status_page import StatusPage
from app.services.submit_reply import SubmitReply
from app.services.submit_request import SubmitRequest
from app.services.submit_text import SubmitText
from app.services.submit_text_reply import SubmitTextReply
from app.services.transfers import TransferKudos
from app.services.user_profile import ReadUser
from app.services.worker_messages import WorkerMessages
from app.services.workers import Workers
from config.metrics import exposition

EXTENSION = "horde"


@dataclass(frozen=True, slots=True)
class NativeServices:
    """What the native API can do."""

    passkeys: Passkeys
    rate_limits: RateLimits
    countermeasures: Countermeasures
    edit_user: EditUser
    submit_request: SubmitRequest
    submit_text: SubmitText
    read_status: ReadStatus
    cancel_request: CancelRequest
    list_models: ListModels
    pop: Pop
    post_progress: PostProgress
    restore_lease: RestoreLease
    submit_reply: SubmitReply
    submit_text_reply: SubmitTextReply
    release_job: ReleaseJob
    transfer_kudos: TransferKudos
    shared_keys: SharedKeys
    read_user: ReadUser
    register: Register
    workers: Workers
    worker_messages: WorkerMessages
    modes: Modes
    performance: Performance
    statistics: Statistics
    status_page: StatusPage
    filters: FilterRoutes
    documents: Documents
    reports: Reports
    key_limits: KeyLimits
    readiness: Callable[[], dict[str, bool]]
    exposition: Callable[[], tuple[bytes, str]]
    reply_limit_bytes: int
    body_limit_bytes: int
    image_body_limit_bytes: int


def build_services(runtime: Runtime) -> NativeServices:
    """Join the use cases with this process's memory of workers and classes."""
    online = OnlineWorkers(runtime.settings.worker_online_seconds)
    classes = RequirementClasses()
    queue_info = QueueInfo(runtime, online, classes)
    statuses = Statuses(online, queue_info)
    statistics = Statistics(runtime)
    modes = Modes(runtime)
    live = (ServiceFigures(runtime, keeps_objects=False), HordeFigures(runtime, online, classes, queue_info))
    return NativeServices(
        passkeys=Passkeys(runtime.database),
        rate_limits=RateLimits(runtime.bus, runtime.settings),
        countermeasures=Countermeasures(runtime, modes, Timeouts(runtime)),
        edit_user=EditUser(runtime),
        submit_request=SubmitRequest(runtime, online, classes, statuses),
        submit_text=SubmitText(runtime, online, classes),
        read_status=ReadStatus(runtime, statuses),
        cancel_request=CancelRequest(runtime, statuses),
        list_models=ListModels(runtime, online),
        pop=Pop(runtime, online, classes, queue_info),
        post_progress=PostProgress(runtime),
        restore_lease=RestoreLease(runtime),
        submit_reply=SubmitReply(runtime),
        submit_text_reply=SubmitTextReply(runtime),
        release_job=ReleaseJob(runtime),
        transfer_kudos=TransferKudos(runtime),
        shared_keys=SharedKeys(runtime),
        read_user=ReadUser(runtime),
        register=Register(runtime),
        workers=Workers(runtime),
        worker_messages=WorkerMessages(runtime),
        modes=modes,
        performance=Performance(runtime, online, queue_info, statistics),
        statistics=statistics,
        status_page=StatusPage(runtime, online, queue_info),
        filters=FilterRoutes(runtime),
        documents=Documents(runtime.settings.documents_folder),
        reports=Reports(runtime),
        key_limits=KeyLimits(runtime),
        readiness=lambda: readiness(runtime),
        exposition=lambda: exposition(*live),
        reply_limit_bytes=runtime.settings.reply_limit_bytes,
        body_limit_bytes=runtime.settings.body_limit_bytes,
        image_body_limit_bytes=runtime.settings.image_body_limit_bytes,
    )


def services() -> NativeServices:
    """Return the services of the app that handles this call."""
    return cast("NativeServices", current_app.extensions[EXTENSION])
