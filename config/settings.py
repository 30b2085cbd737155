"""The one reader of the environment.

Every process builds one frozen `Settings` at its start and passes it on. A bad
environment is refused with all its problems listed at once (`SettingsError`).
"""

from functools import lru_cache
from pathlib import Path
from typing import TypeVar

from pydantic import DirectoryPath, Field, SecretStr, ValidationError
from pydantic_settings import BaseSettings, SettingsConfigDict

from config.setting_types import (
    BrokerUrl,
    HttpUrl,
    Login,
    LogLevel,
    Network,
    PostgresScheme,
    PostgresUrl,
    RedisUrl,
    TrustedProxies,
    proxies_in,
)

MASK = "********"

TASK_CONNECTIONS = 30
"""Connections kept for task processes, the launcher and operators: the Procfile's ten task processes and parents."""


class SettingsError(Exception):
    """The environment cannot be used; the message lists every problem, one a line."""


class FrontSettings(BaseSettings):
    """What a front needs to know, and every other process too. Names are the environment's, in lower case."""

    model_config = SettingsConfigDict(env_file=".env", extra="ignore", frozen=True, env_ignore_empty=True)

    redis_url: RedisUrl = Field(description="Redis or Valkey: signals, verdicts, figures.", repr=False)
    broker_url: BrokerUrl | None = Field(
        default=None, description="Celery's broker, when it is not REDIS_URL: a Redis or a RabbitMQ.", repr=False
    )
    leases_url: RedisUrl | None = Field(
        default=None, description="Leases and progress streams, when they are not in REDIS_URL.", repr=False
    )

    horde_bind_host: str = Field(default="127.0.0.1", description="Address that the HTTP processes listen on.")
    port: int | None = Field(default=None, ge=1, le=65535, description="The one port that a Procfile host routes to.")
    horde_native_port: int = Field(default=7001, ge=1, le=65535, description="Port of the native API.")
    horde_front_port: int = Field(default=7000, ge=1, le=65535, description="Port of the front.")
    horde_metrics_port: int | None = Field(
        default=None, ge=1, le=65535, description="Port for health and metrics of a process without HTTP of its own."
    )
    horde_log_level: LogLevel = Field(default="INFO", description="Lowest level that is logged.")

    native_threads: int = Field(default=16, ge=2, le=256, description="Request threads of a web process.")
    native_processes: int = Field(default=1, ge=1, le=64, description="Web processes behind one port.")
    native_urls: str = Field(
        default="http://127.0.0.1:7001", description="Roots of the native API that the front uses, comma separated."
    )
    service_passkey: SecretStr | None = Field(
        default=None, min_length=16, description="Passkey of the service account that the front speaks as."
    )
    trusted_proxies: TrustedProxies = Field(
        default="0",
        description="Proxies before us that append to X-Forwarded-For: their number, or networks, comma separated.",
    )

    default_deadline_seconds: int = Field(default=580, ge=1, description="How long the front waits for an answer.")
    availability_grace_seconds: int = Field(
        default=30, ge=0, description="How long the front waits while a request is not possible."
    )
    request_ttl_seconds: int = Field(default=1200, ge=1, description="Life of a request that names no deadline.")
    expiry_margin_seconds: int = Field(default=60, ge=0, description="Native expires this long after the deadline.")
    default_max_tokens: int = Field(default=512, ge=1, description="max_tokens of a chat request that names none.")
    worker_online_seconds: int = Field(default=300, ge=1, description="A worker silent for this long is offline.")
    generation_ttl_floor_seconds: int = Field(default=150, ge=1, description="Shortest time a worker gets for a job.")
    max_faults: int = Field(default=3, ge=1, description="Faulted generations that fault their request.")
    verdict_wait_seconds: float = Field(
        default=2.0, ge=0, le=25, description="How long a worker's submit waits for its verdict."
    )
    heartbeat_seconds: float = Field(
        default=30.0, gt=0, description="Silence after which a worker that posted progress is taken for dead."
    )
    progress_retention_seconds: int = Field(
        default=300, ge=1, le=86_400, description="A progress stream is kept this long after its job's end."
    )
    pop_wait_seconds: int = Field(default=20, ge=0, le=25, description="Default hold of a pop on the front.")
    fallback_poll_seconds: float = Field(default=10.0, gt=0, description="The front's poll when no signal comes.")
    keep_alive_seconds: float = Field(default=15.0, gt=0, description="Silence before a stream gets a comment.")
    early_headers_seconds: float | None = Field(
        default=None,
        gt=0,
        description="Silence before a plain answer's headers go out, then white space; off if not set.",
    )
    stream_pacing: bool = Field(default=True, description="Spread a worker's posts evenly instead of in lumps.")
    drain_seconds: float = Field(default=25.0, ge=0, description="Time that open requests get after SIGTERM.")
    front_open_limit: int = Field(default=10_000, ge=1, description="Open requests of one front process.")
    front_source_limit: int = Field(default=64, ge=1, description="Open requests of one source.")
    body_limit_bytes: int = Field(default=10 * 2**20, ge=1024, description="Largest request body without images.")
    image_body_limit_bytes: int = Field(
        default=32 * 2**20, ge=1024, description="Largest body of a chat request with images."
    )
    front_body_readers: int = Field(default=32, ge=1, description="Large bodies that a front reads at a time.")
    body_read_seconds: float = Field(default=30.0, gt=0, description="Time that a client gets to send its body.")
    reply_limit_bytes: int = Field(default=4 * 2**20, ge=1024, description="Largest reply body of a worker.")

    sweep_seconds: float = Field(default=5.0, gt=0, description="Period of the rescue sweep.")
    queue_refresh_seconds: float = Field(default=2.0, gt=0, description="Period of the queue's figures.")
    statistics_seconds: float = Field(default=5.0, gt=0, description="Period of counting what was delivered.")
    rescue_after_seconds: float = Field(default=5.0, gt=0, description="Age at which a waiting row is re-dispatched.")
    rescue_attempts: int = Field(default=10, ge=1, description="Attempts after which a stuck row becomes terminal.")
    schema_limit_seconds: int = Field(
        default=5, ge=1, le=20, description="Time that a reply gets to be judged by its client's schema."
    )
    schema_attempts: int = Field(
        default=3, ge=1, description="Judgements begun and not ended after which a schema faults its request."
    )
    settlement_batch: int = Field(default=500, ge=1, le=5000, description="Generations settled in one transaction.")
    body_retention_seconds: int = Field(default=1200, ge=0, description="Bodies are erased this long after the end.")

    anonymous_concurrency: int = Field(
        default=500, ge=1, description="Anonymous requests that may wait for the same models."
    )
    user_concurrency: int = Field(default=30, ge=1, description="Requests of one account that may wait.")
    education_concurrency: int = Field(
        default=200, ge=1, description="Requests of an account with the education role that may wait."
    )
    kudos_trust_threshold: float = Field(
        default=10_000, ge=0, description="Kudos in escrow above which an account of seven days is trusted."
    )

    workers_untrusted: int = Field(
        default=3, ge=1, description="Workers that an owner who is not trusted may have online."
    )
    workers_trusted: int = Field(default=20, ge=1, description="Workers that a trusted owner may have online.")
    addresses_per_hour: int = Field(
        default=10, ge=1, description="Addresses within an hour that an untrusted owner's workers may come from."
    )
    unsafe_networks: str = Field(
        default="",
        description="Networks, comma separated, from which only trusted owners and those with the vpn role may work.",
    )
    refused_name_words: str = Field(
        default="fuck,shit,cunt,nigger,faggot,nazi,hitler,rapist,pedo",
        description="Words, comma separated, that no name of an account or a worker may hold.",
    )
    timeout_step_seconds: int = Field(
        default=60,
        ge=1,
        description="How long an address is kept out after a refused prompt; three, five, ... times this after more.",
    )
    documents_folder: DirectoryPath | None = Field(
        default=None, description="Folder of the operator's terms.md, privacy.md, sponsors.md and news.json."
    )
    rate_limits: bool = Field(default=True, description="Whether calls are limited at all.")
    rate_default_per_minute: int = Field(
        default=180, ge=0, description="Calls of one route that an address may make; like every rate, 0 is no limit."
    )
    rate_submit_per_minute: int = Field(default=600, ge=0, description="Requests that an address may submit.")
    rate_submit_per_second: int = Field(default=20, ge=0, description="Requests that an address may submit.")
    rate_submit_key_per_second: int = Field(default=10, ge=0, description="Requests that a key may submit.")
    rate_submit_anonymous_per_second: int = Field(
        default=60, ge=0, description="Requests that all who use the anonymous key may submit."
    )
    rate_status_per_minute: int = Field(
        default=600, ge=0, description="Reads and cancels of one request by an address."
    )
    rate_worker_calls_per_second: int = Field(
        default=60, ge=0, description="Pops that an address may make, and as many submits."
    )
    rate_worker_page_per_minute: int = Field(default=60, ge=0, description="Calls about one worker by an address.")
    rate_user_page_per_minute: int = Field(default=60, ge=0, description="Calls about one account by an address.")
    rate_shared_keys_per_minute: int = Field(default=5, ge=0, description="Shared keys that an address may make.")
    rate_transfers_per_second: int = Field(default=1, ge=0, description="Transfers of kudos with one key.")
    rate_transfers_per_hour: int = Field(default=90, ge=0, description="Transfers of kudos with one key.")
    rate_modes_per_minute: int = Field(default=30, ge=0, description="Calls about the horde's modes by an address.")
    rate_register_per_minute: int = Field(default=10, ge=0, description="Accounts that an address may register.")
    rate_register_per_hour: int = Field(default=20, ge=0, description="Accounts that an address may register.")
    rate_register_per_day: int = Field(default=50, ge=0, description="Accounts that an address may register.")
    rate_reports_per_hour: int = Field(default=20, ge=0, description="Reports with one key.")

    database_connection_limit: int = Field(
        default=90, ge=40, description="Connections that all processes together may hold."
    )
    flower_basic_auth: Login | None = Field(default=None, description="user:password for Flower.")

    @property
    def celery_broker_url(self) -> str:
        """The broker in force: BROKER_URL, else REDIS_URL."""
        return self.broker_url or self.redis_url

    @property
    def proxies(self) -> int | tuple[Network, ...]:
        """The trusted proxies: how many, or their networks."""
        return proxies_in(self.trusted_proxies)

    @property
    def native_roots(self) -> tuple[str, ...]:
        """The roots of NATIVE_URLS, in order."""
        return tuple(root.strip().rstrip("/") for root in self.native_urls.split(",") if root.strip())

    def masked(self) -> dict[str, object]:
        """Every setting with secrets and URL passwords masked, for people and logs."""
        shown: dict[str, object] = {}
        for name in type(self).model_fields:
            value = getattr(self, name)
            if isinstance(value, SecretStr):
                shown[name] = MASK
            elif isinstance(value, str) and "://" in value and "@" in value:
                scheme, _, rest = value.partition("://")
                shown[name] = f"{scheme}://{MASK}@{rest.rpartition('@')[2]}"
            elif isinstance(value, Path):
                shown[name] = str(value)
            else:
                shown[name] = value
        return shown

    @property
    def leases_redis_url(self) -> str:
        """The Redis of leases and progress in force: LEASES_URL, else REDIS_URL."""
        return self.leases_url or self.redis_url


class LauncherSettings(BaseSettings):
    """What the launcher of a whole horde on one machine reads; what is not set, it provides itself."""

    model_config = SettingsConfigDict(env_file=".env", extra="ignore", frozen=True, env_ignore_empty=True)

    horde_home: Path | None = Field(default=None, description="Data folder; .horde in the checkout when not set.")
    horde_port_base: int = Field(default=7000, ge=1, le=65_500, description="First port of the horde's block.")
    database_url: PostgresScheme | None = Field(
        default=None, repr=False, description="PostgreSQL to use instead of one of its own."
    )
    redis_url: RedisUrl | None = Field(default=None, repr=False, description="Redis to use instead of one of its own.")
    s3_endpoint_url: HttpUrl | None = Field(default=None, description="S3 store to use instead of one of its own.")


class Settings(FrontSettings):
    """Everything that can be set from outside: a front's settings and where the truth is."""

    database_url: PostgresUrl = Field(description="PostgreSQL, the only truth.", repr=False)

    s3_endpoint_url: HttpUrl | None = Field(default=None, description="The S3 store; Amazon's own when not set.")
    s3_public_endpoint_url: HttpUrl | None = Field(
        default=None, description="The store as workers reach it, for signed URLs; S3_ENDPOINT_URL when not set."
    )
    s3_bucket: str = Field(default="horde", min_length=1, description="Bucket for images and offloaded messages.")
    s3_region: str = Field(
        default="us-east-1", min_length=1, description="Region that calls of the store are signed for."
    )
    aws_access_key_id: SecretStr | None = Field(
        default=None, description="Key of the store. Without it, requests with images are refused."
    )
    aws_secret_access_key: SecretStr | None = Field(default=None, description="Secret of that key.")
    storage_patience_seconds: float = Field(
        default=300.0, gt=0, description="How long a request with images waits for a store that is away."
    )

    image_limit: int = Field(default=20, ge=0, le=100, description="Images of one request.")
    image_limit_bytes: int = Field(default=20 * 2**20, ge=1024, le=64 * 2**20, description="Largest image as it comes.")
    image_pixel_limit: int = Field(default=25_000_000, ge=1, description="Most pixels of an image as it comes.")
    image_longest_side: int = Field(
        default=2048, ge=64, le=16_384, description="Longest side, in pixels, of an image as it is stored."
    )
    image_decoder_mebibytes: int = Field(
        default=1024, ge=256, description="Address space, in MiB, of the process that decodes images."
    )
    image_decoder_seconds: int = Field(
        default=10, ge=1, le=20, description="Processor time that the decoding of one image may take."
    )
    image_fetch: bool = Field(default=True, description="Whether images are fetched from http and https URLs.")
    image_fetch_seconds: float = Field(
        default=10.0, gt=0, le=20, description="Time to fetch all remote images of a request."
    )
    image_fetch_allowed_hosts: str = Field(
        default="",
        description="Hosts of yours as host:port, comma separated, that images may come from though they are private.",
    )
    image_attempts: int = Field(
        default=3, ge=1, description="Attempts at a request's images that were begun and never ended, before it faults."
    )
    media_url_seconds: int = Field(
        default=120, ge=1, le=3600, description="Life of a signed URL that a worker is given."
    )
    offload_bytes: int | None = Field(
        default=None, ge=1024, description="Size of messages with their images above which they are offloaded, if set."
    )
    media_orphan_seconds: int = Field(
        default=3600, ge=1, description="Age at which objects that belong to no request are deleted."
    )

    @property
    def has_object_store(self) -> bool:
        """Whether there is a store for images."""
        return self.aws_access_key_id is not None and self.aws_secret_access_key is not None

    @property
    def fetchable_hosts(self) -> frozenset[str]:
        """The hosts of IMAGE_FETCH_ALLOWED_HOSTS."""
        return frozenset(host.strip().lower() for host in self.image_fetch_allowed_hosts.split(",") if host.strip())

    @property
    def web_pool_size(self) -> int:
        """Connections of one web process: one a thread, as long as all processes stay below the limit (O2)."""
        share = (self.database_connection_limit - TASK_CONNECTIONS) // self.native_processes
        return max(1, min(self.native_threads, share))


Loaded = TypeVar("Loaded", bound=BaseSettings)


def load_settings() -> Settings:
    """Read the environment.

    Raises SettingsError with every problem, each naming its variable.
    """
    return _load(Settings)


def load_front_settings() -> FrontSettings:
    """Read the environment of a front, which needs no database.

    Raises SettingsError with every problem, each naming its variable.
    """
    return _load(FrontSettings)


def load_launcher_settings() -> LauncherSettings:
    """Read the launcher's part of the environment.

    Raises SettingsError with every problem, each naming its variable.
    """
    return _load(LauncherSettings)


def _load(kind: type[Loaded]) -> Loaded:
    try:
        return kind()
    except ValidationError as error:
        lines = []
        for problem in error.errors():
            name = ".".join(str(part) for part in problem["loc"]).upper() or "settings"
            text = problem["msg"].removeprefix("Value error, ")
            lines.append(f"{name}: {'is not set' if problem['type'] == 'missing' else text}")
        raise SettingsError("\n".join(lines)) from None


@lru_cache(maxsize=1)
def get_settings() -> Settings:
    """The process's settings, read once; a bad environment ends the process with every problem named."""
    try:
        return load_settings()
    except SettingsError as error:
        raise SystemExit(f"The environment cannot be used:\n{error}") from None
