"""The object store: any S3, through boto3. Calls are bounded in time and fail with one error."""

import threading
from collections.abc import Callable, Iterable, Iterator
from functools import cached_property, partial
from itertools import product
from typing import IO, Any, TypeVar

import boto3
import structlog
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError
from prometheus_client import Counter

from config.metrics import begin_at_zero
from config.settings import Settings

CONNECT_SECONDS = 2
REQUEST_SECONDS = 3
"""How long a request thread waits for a sign of the store (details D13)."""

TASK_SECONDS = 10
"""The same for a task, which deletes many objects in one call."""

CHUNK_BYTES = 2**18
DELETE_BATCH = 500
MISSING_CODES = frozenset({"NoSuchKey", "404", "NotFound"})

FULL_CODES = frozenset({"InsufficientStorage", "QuotaExceeded", "XMinioStorageFull"})
"""How stores say that they have no room; others answer 507 with a code of their own."""

FULL_STATUS = 507

STORE_CALLS = Counter("horde_store_calls", "Calls of the object store.", ["call", "outcome"])
begin_at_zero(
    STORE_CALLS, *product(("put", "read", "download", "list", "delete", "ping"), ("done", "missing", "failed", "full"))
)

log = structlog.get_logger(__name__)

Returned = TypeVar("Returned")


class StoreAway(Exception):
    """The object store does not answer, or refuses what it should do."""


class ObjectMissing(Exception):
    """There is no such object."""


class ObjectStore:
    """One process's line to the store. Safe to share between threads."""

    def __init__(self, settings: Settings, *, read_seconds: int = TASK_SECONDS) -> None:
        self._settings = settings
        self._read_seconds = read_seconds
        self._building = threading.Lock()

    @property
    def is_configured(self) -> bool:
        """Whether this horde has a store at all."""
        return self._settings.has_object_store

    def put(self, key: str, body: bytes | IO[bytes], content_type: str) -> None:
        """Store an object, over another of this key. Raises StoreAway."""
        self._call(
            "put",
            lambda: self._client.put_object(Bucket=self._bucket, Key=key, Body=body, ContentType=content_type),
        )

    def read(self, key: str) -> bytes:
        """Return an object. Raises ObjectMissing or StoreAway."""
        body: bytes = self._call("read", lambda: self._body(key).read())
        return body

    def download(self, key: str, target: IO[bytes]) -> None:
        """Write an object to a file, a piece at a time. Raises ObjectMissing or StoreAway."""

        def copy() -> None:
            for chunk in self._body(key).iter_chunks(CHUNK_BYTES):
                target.write(chunk)

        self._call("download", copy)

    def keys(self, prefix: str, *, most: int) -> list[tuple[str, float]]:
        """Return up to `most` keys with their ages' starts, as seconds since the epoch. Raises StoreAway."""

        def listed() -> list[tuple[str, float]]:
            found: list[tuple[str, float]] = []
            for page in self._client.get_paginator("list_objects_v2").paginate(Bucket=self._bucket, Prefix=prefix):
                found.extend((each["Key"], each["LastModified"].timestamp()) for each in page.get("Contents", ()))
                if len(found) >= most:
                    break
            return found[:most]

        return self._call("list", listed)

    def delete(self, keys: Iterable[str]) -> None:
        """Delete objects; one that is not there is no trouble. Raises StoreAway."""
        for batch in _batches(keys, DELETE_BATCH):
            self._call("delete", partial(self._delete, batch))

    def signed_url(self, key: str, content_type: str, seconds: int) -> str:
        """Return a URL under which anybody may read the object for so long. Asks nobody."""
        url: str = self._public_client.generate_presigned_url(
            "get_object",
            Params={"Bucket": self._bucket, "Key": key, "ResponseContentType": content_type},
            ExpiresIn=seconds,
        )
        return url

    def ping(self) -> None:
        """Ask for a sign of life. Raises StoreAway."""
        self._call("ping", lambda: self._client.head_bucket(Bucket=self._bucket))

    def _body(self, key: str) -> Any:
        return self._client.get_object(Bucket=self._bucket, Key=key)["Body"]

    def _delete(self, batch: list[str]) -> None:
        answer = self._client.delete_objects(
            Bucket=self._bucket, Delete={"Objects": [{"Key": key} for key in batch], "Quiet": True}
        )
        refused = [each for each in answer.get("Errors", ()) if each.get("Code") not in MISSING_CODES]
        if refused:
            raise StoreAway(f"{len(refused)} objects were not deleted: {refused[0].get('Code')}")

    def _call(self, call: str, work: Callable[[], Returned]) -> Returned:
        """Run one call. The error's text is not kept: it may hold a signed URL (images I8)."""
        try:
            result = work()
        except ClientError as error:
            code = str(error.response.get("Error", {}).get("Code"))
            if code in MISSING_CODES:
                STORE_CALLS.labels(call, "missing").inc()
                raise ObjectMissing(call) from None
            if code in FULL_CODES or error.response["ResponseMetadata"]["HTTPStatusCode"] == FULL_STATUS:
                STORE_CALLS.labels(call, "full").inc()
                log.warning("storage.full", call=call, error=code)
            else:
                self._failed(call, code)
        except (BotoCoreError, OSError) as error:
            self._failed(call, type(error).__name__)
        else:
            STORE_CALLS.labels(call, "done").inc()
            return result
        raise StoreAway(call)

    def _failed(self, call: str, error: str) -> None:
        STORE_CALLS.labels(call, "failed").inc()
        log.warning("storage.unreachable", call=call, error=error)

    @property
    def _bucket(self) -> str:
        return self._settings.s3_bucket

    @cached_property
    def _client(self) -> Any:
        return self._made(self._settings.s3_endpoint_url)

    @cached_property
    def _public_client(self) -> Any:
        public = self._settings.s3_public_endpoint_url
        return self._client if public is None else self._made(public)

    def _made(self, endpoint: str | None) -> Any:
        access, secret = self._settings.aws_access_key_id, self._settings.aws_secret_access_key
        if access is None or secret is None:
            raise StoreAway("no object store is configured")
        with self._building:
            return boto3.session.Session().client(
                "s3",
                endpoint_url=endpoint,
                region_name=self._settings.s3_region,
                aws_access_key_id=access.get_secret_value(),
                aws_secret_access_key=secret.get_secret_value(),
                config=Config(
                    signature_version="s3v4",
                    connect_timeout=CONNECT_SECONDS,
                    read_timeout=self._read_seconds,
                    retries={"total_max_attempts": 1},
                    max_pool_connections=16,
                    tcp_keepalive=True,
                    # A store of another maker need not know the newer checksums; TLS and the signature guard the body.
                    request_checksum_calculation="when_required",
                    response_checksum_validation="when_required",
                    s3={"addressing_style": "path" if endpoint else "auto"},
                ),
            )


def _batches(keys: Iterable[str], size: int) -> Iterator[list[str]]:
    rest = list(keys)
    for start in range(0, len(rest), size):
        yield rest[start : start + size]
