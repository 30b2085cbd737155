"""Routes for workers: pop, progress, lease and submit (native-api N3, wire reference §2.4 and §2.5)."""

from collections.abc import Mapping

from flask import Blueprint, Response, request

from app.api import contract_schemas, shapes
from app.api.callers import read_caller, require_key
from app.api.errors import json_response
from app.api.operations import Key, Operation, documented
from app.api.services import services
from app.domain import errors
from app.domain.capabilities import parse_declaration
from app.domain.errors import BadRequest
from app.domain.json_boundary import parse_worker_object
from app.domain.progress import parse_job_id, parse_post
from app.domain.text_reply import STATES, parse_text_reply
from app.domain.text_request import EMPTY_PAYLOAD
from app.domain.verification import parse_reply
from app.services.pop import Job
from app.services.submit_reply import Receipt

POP_KEY_LENGTH = 255

blueprint = Blueprint("worker", __name__)


@blueprint.post("/generate/text/pop")
@documented(
    Operation(
        tag="bridges",
        key=Key.REQUIRED,
        body=contract_schemas.pop_body(),
        answers={200: shapes.Popped},
        refuses=(
            errors.InvalidPriorityUsername,
            errors.AnonForbiddenWorker,
            errors.WrongCredentials,
            errors.AddressBanned,
            errors.WorkerMaintenance,
        ),
    )
)
def pop() -> Response:
    """Give a worker its next job, or say that there is none. Never holds: the front does."""
    uses = services()
    calling = read_caller(request, uses.passkeys)
    body = parse_worker_object(request.get_data(cache=False))
    declaration, warnings = parse_declaration(body)
    job = uses.pop(calling.require_key(), declaration, _pop_key(body), calling.address)
    return json_response(_pop_answer(job, warnings))


@blueprint.post("/generate/text/progress")
@documented(
    Operation(
        tag="bridges",
        key=Key.REQUIRED,
        body=contract_schemas.progress_body(),
        answers={200: shapes.Posted},
        refuses=(
            errors.InvalidJobId,
            errors.LeaseNotFound,
            errors.LeaseEnded,
            errors.ProgressOutOfStep,
            errors.ProgressCapReached,
            errors.ProgressUnavailable,
        ),
    )
)
def progress() -> Response:
    """Take what a worker wrote since its last post, or its heartbeat; the lease alone says who it is."""
    uses = services()
    request.max_content_length = uses.reply_limit_bytes
    post = parse_post(parse_worker_object(request.get_data(cache=False)))
    told = uses.post_progress(require_key(request), post)
    return json_response({"cancelled": told.cancelled, "next_seq": told.next_seq})


@blueprint.post("/generate/text/lease")
@documented(
    Operation(
        tag="bridges",
        key=Key.REQUIRED,
        body=contract_schemas.lease_body(),
        answers={200: shapes.LeaseRestored},
        refuses=(errors.InvalidJobId, errors.WrongCredentials, errors.LeaseEnded, errors.ProgressUnavailable),
    )
)
def lease() -> Response:
    """Restore the lease of a running job after Redis lost it."""
    generation_id = parse_job_id(parse_worker_object(request.get_data(cache=False)))
    restored = services().restore_lease(require_key(request), generation_id)
    return json_response({"stream": restored.streamed, "next_seq": restored.next_seq})


@blueprint.post("/generate/text/submit")
@documented(
    Operation(
        tag="bridges",
        key=Key.REQUIRED,
        body=contract_schemas.submit_body(),
        answers={200: shapes.Rewarded, 202: shapes.Submitted},
        refuses=(errors.ChatReplyRefused, errors.AbortedGen, errors.WrongCredentials, errors.InvalidJobId),
    )
)
def submit() -> Response:
    """Take a worker's reply or its fault; 200 with the reward, 202 while the verdict is still to come."""
    uses = services()
    api_key = require_key(request)
    request.max_content_length = uses.reply_limit_bytes
    body = parse_worker_object(request.get_data(cache=False))
    generation_id = parse_job_id(body)
    state = body.get("state", "ok")
    if state == "faulted":
        fault = body.get("fault")
        return _receipt(uses.submit_reply.fault(api_key, generation_id, fault if isinstance(fault, str) else ""))
    if state not in STATES:
        raise BadRequest(f"state: must be faulted or one of {', '.join(STATES)}.", param="state")
    if "generation" in body and "message" not in body:
        return _receipt(uses.submit_text_reply(api_key, generation_id, parse_text_reply(body)))
    return _receipt(uses.submit_reply.deliver(api_key, generation_id, parse_reply(body)))


def _receipt(receipt: Receipt) -> Response:
    if receipt.is_final:
        return json_response({"reward": receipt.reward})
    return json_response({"state": "submitted"}, 202)


def _pop_answer(job: Job, warnings: tuple[str, ...]) -> dict[str, object]:
    """Shape a pop's answer: every key is always there, since existing bridges index them unguarded."""
    return {
        "id": str(job.id) if job.id else None,
        "ids": [str(each) for each in job.ids],
        "is_chat": job.is_chat,
        "payload": job.payload or dict(EMPTY_PAYLOAD),
        "model": job.model,
        "ttl": job.ttl_seconds,
        "skipped": dict(job.skipped),
        "worker_id": str(job.worker_id),
        "softprompt": None,
        "messages": list(job.messages),
        "extra_source_images": None,
        "declaration_warnings": list(warnings),
    }


def _pop_key(body: Mapping[str, object]) -> str | None:
    value = body.get("pop_key")
    if value is None:
        return None
    if not isinstance(value, str) or not 1 <= len(value) <= POP_KEY_LENGTH or not value.isprintable():
        raise BadRequest("pop_key: must be a string of 1 to 255 printable characters.", param="pop_key")
    return value
