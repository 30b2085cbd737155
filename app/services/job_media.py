"""Puts images and offloaded messages into a popped job, by the worker's declared transport (ADR 0032, images I5, I6).

It runs after the claim's commit, with no row locked and no connection held, since the store
may be slow. A store that is away costs nobody a job: it is given back, and no fault is counted.
"""

from collections.abc import Set
from typing import Any
from uuid import UUID

import structlog
from sqlalchemy import text

from app.adapters.object_store import ObjectMissing
from app.domain.declaration import Declaration, Transport
from app.domain.errors import StorageUnavailable
from app.domain.images.parts import image_keys, with_urls
from app.domain.images.transport import Carriage, carriage
from app.domain.redis_keys import QueueSignal
from app.domain.requirements import Requirements
from app.domain.states import GenerationState, RequestState
from app.services.faults import end_request, lock_generation
from app.services.offload_messages import inlined
from app.services.release_job import ReleaseJob
from app.services.runtime import Runtime
from app.services.stage_images import PREFIX, offloaded_key
from app.services.transitions import move_generation

log = structlog.get_logger(__name__)


class JobMedia:
    """The last step of a pop."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._release = ReleaseJob(runtime)

    def may_serve(self, declaration: Declaration, class_id: int, klass: Requirements) -> bool:
        """Whether a job of this class could be handed out now: not inline, while the store is away.

        Pops that are held meanwhile are woken when the store is asked again (details D16).
        """
        if not klass.images or Transport.URL in declaration.image_transports:
            return True
        gate = self._runtime.gate
        if not gate.is_resting:
            return True
        signal = QueueSignal(class_id=class_id, requirements=klass.stored())
        gate.when_rested(class_id, lambda: self._runtime.bus.publish_queue(signal))
        return False

    def completed(
        self, payload: dict[str, Any], transports: Set[str], *, folder: str | None, generation_id: UUID
    ) -> dict[str, Any] | None:
        """Return the payload as the worker gets it; None when the job had to be given back.

        `folder` is where the messages were offloaded to, if they were.
        """
        keys = [key for key in image_keys(payload["messages"]) if key.startswith(PREFIX)]
        way = carriage(transports, offloaded=folder is not None, has_images=bool(keys))
        if way is Carriage.OFFLOADED and folder is not None:
            rest = {name: value for name, value in payload.items() if name != "messages"}
            return rest | {"messages_url": self._signed(offloaded_key(folder), "application/json")}
        if way is Carriage.LINKED:
            links = {key: self._signed(key, "image/jpeg") for key in keys}
            messages = with_urls(payload["messages"], lambda _path, key: links[key])
            return payload | {"messages": messages, "image_urls": [links[key] for key in keys]}
        if way is Carriage.INLINED:
            return self._inlined(payload, generation_id)
        return payload

    def _inlined(self, payload: dict[str, Any], generation_id: UUID) -> dict[str, Any] | None:
        try:
            messages = self._runtime.gate.call(lambda: inlined(self._runtime, payload["messages"]))
        except StorageUnavailable:
            self._release(generation_id)
            return None
        except ObjectMissing:
            self._give_up(generation_id)
            return None
        return payload | {"messages": messages}

    def _signed(self, key: str, content_type: str) -> str:
        return self._runtime.store.signed_url(key, content_type, self._runtime.settings.media_url_seconds)

    def _give_up(self, generation_id: UUID) -> None:
        """Fault a request whose images are not in the store any more: no worker could ever have them."""
        fault = {
            "rc": StorageUnavailable.rc,
            "message": "The images of this request are not in the horde's store any more. Send it again.",
            "param": None,
        }
        with self._runtime.database.transaction() as transaction:
            row = lock_generation(transaction, generation_id)
            if row is None or row.generation_state != GenerationState.LEASED:
                return
            move_generation(
                transaction, generation_id, GenerationState.FAULTED, fault="released", ended_at=text("now()")
            )
            end_request(self._runtime, transaction, row.request_id, RequestState.FAULTED, fault=fault)
        log.error("images.lost", generation_id=str(generation_id))
