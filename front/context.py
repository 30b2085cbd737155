"""What the parts of one front process share."""

from dataclasses import dataclass

from config.settings import FrontSettings
from front.admission import Admission, KnownKeys
from front.background import Background
from front.bodies import BodyReaders
from front.cancels import Cancels
from front.doorbell import Doorbell
from front.drain import Drain
from front.held_pop import PopQueue
from front.lifecycle import Surroundings
from front.metrics import FrontMetrics
from front.models import ModelCatalog
from front.native import NativeApi
from front.progress_reader import ProgressReader
from front.relay import LiveStreams
from front.status_reads import StatusReads
from front.timing import Patience


@dataclass(frozen=True, slots=True)
class Front:
    """One process's parts."""

    settings: FrontSettings
    metrics: FrontMetrics
    native: NativeApi
    doorbell: Doorbell
    posts: Doorbell
    background: Background
    drain: Drain
    admission: Admission
    bodies: BodyReaders
    known_keys: KnownKeys
    pops: PopQueue
    models: ModelCatalog
    progress: ProgressReader
    live: LiveStreams
    surroundings: Surroundings


def build_front(settings: FrontSettings) -> Front:
    """Put the parts together. Nothing connects before `open_front`."""
    passkey = settings.service_passkey
    metrics = FrontMetrics()
    native = NativeApi(settings.native_roots, None if passkey is None else passkey.get_secret_value())
    doorbell = Doorbell(settings.redis_url, metrics)
    background, drain = Background(), Drain()
    admission = Admission(settings.front_open_limit, settings.front_source_limit)
    bodies = BodyReaders(settings.front_body_readers)
    pops = PopQueue(doorbell)
    is_one_redis = settings.leases_redis_url == settings.redis_url
    posts = doorbell if is_one_redis else Doorbell(settings.leases_redis_url, metrics)
    progress = ProgressReader(
        settings.leases_redis_url,
        metrics,
        poll_seconds=settings.fallback_poll_seconds,
        is_blind=lambda: not posts.connected,
        own_doorbell=None if is_one_redis else posts,
    )
    posts.listen_to_progress(progress.rang, progress.ask_all)
    patience = Patience(
        deadline_seconds=settings.default_deadline_seconds,
        grace_seconds=settings.availability_grace_seconds,
        poll_seconds=settings.fallback_poll_seconds,
    )
    metrics.gauge("open_requests", "Places taken in the admission.", lambda: admission.open)
    metrics.gauge("open_waits", "Chat requests that wait for a signal.", lambda: doorbell.bells)
    metrics.gauge("waiting_bodies", "Large bodies that wait to be read.", lambda: bodies.waiting)
    metrics.gauge("held_pops", "Pops that wait for a job.", lambda: len(pops))
    metrics.gauge("resting_roots", "Native roots that gave no answer lately.", lambda: native.roots.resting)
    metrics.gauge("signals_connected", "1 while signals arrive.", lambda: float(doorbell.connected))
    return Front(
        settings=settings,
        metrics=metrics,
        native=native,
        doorbell=doorbell,
        posts=posts,
        background=background,
        drain=drain,
        admission=admission,
        bodies=bodies,
        known_keys=KnownKeys(),
        pops=pops,
        models=ModelCatalog(native),
        progress=progress,
        live=LiveStreams(progress, is_paced=settings.stream_pacing),
        surroundings=Surroundings(
            native,
            StatusReads(native, background),
            doorbell,
            Cancels(native, background),
            drain,
            metrics,
            patience,
        ),
    )


def open_front(front: Front) -> None:
    """Connect; call it inside the running loop."""
    front.native.open()
    for doorbell in {front.doorbell, front.posts}:
        doorbell.start()
    front.progress.start()


async def close_front(front: Front, settle_seconds: float) -> None:
    """Let running cancels and releases end, then close every pool."""
    await front.background.settle(settle_seconds)
    for doorbell in {front.doorbell, front.posts}:
        await doorbell.close()
    await front.progress.close()
    await front.native.close()
