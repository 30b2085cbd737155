"""Requests: the record, its body apart, and the narrow hot queue (architecture A5, details D11)."""

from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import (
    BigInteger,
    CheckConstraint,
    DateTime,
    Double,
    ForeignKey,
    Identity,
    Index,
    Integer,
    SmallInteger,
    String,
    Text,
    text,
)
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.orm import Mapped, mapped_column

from app.domain.states import OPEN_REQUESTS, RequestState
from app.models.base import Base, CreatedAt, Json, Millikudos, UuidKey, one_of


class RequirementClass(Base):
    """Everything that decides which workers may serve a request, interned (details D11)."""

    __tablename__ = "requirement_classes"

    id: Mapped[int] = mapped_column(Integer, Identity(), primary_key=True)
    digest: Mapped[str] = mapped_column(String(64), unique=True)
    requirements: Mapped[Json]
    created_at: Mapped[CreatedAt]


class HordeRequest(Base):
    """What a requester submitted: its state, its limits and what it costs."""

    __tablename__ = "horde_requests"
    __table_args__ = (
        CheckConstraint(one_of("state", RequestState), name="state"),
        CheckConstraint("waiting >= 0 AND finished >= 0 AND waiting + finished <= n", name="slots"),
        Index(
            "ix_horde_requests_expires_at_open",
            "expires_at",
            postgresql_where=text("ended_at IS NULL"),
        ),
        Index(
            "ix_horde_requests_ended_at_bodies",
            "ended_at",
            postgresql_where=text("ended_at IS NOT NULL AND bodies_erased_at IS NULL"),
        ),
        Index(
            "ix_horde_requests_user_id_class_id_waiting",
            "user_id",
            "class_id",
            postgresql_where=text("state IN ('preparing', 'queued')"),
        ),
        Index(
            "ix_horde_requests_key_id_open",
            "key_id",
            postgresql_where=text(f"key_id IS NOT NULL AND {one_of('state', OPEN_REQUESTS)}"),
        ),
        CheckConstraint("hold >= 0", name="hold"),
    )

    id: Mapped[UuidKey]
    user_id: Mapped[int] = mapped_column(ForeignKey("users.id"), index=True)
    is_chat: Mapped[bool]
    streams: Mapped[bool] = mapped_column(default=False, server_default=text("false"))
    state: Mapped[str] = mapped_column(String(16))
    class_id: Mapped[int] = mapped_column(ForeignKey("requirement_classes.id"))
    requirements: Mapped[Json]
    max_length: Mapped[int] = mapped_column(Integer)
    max_context_length: Mapped[int] = mapped_column(Integer)
    context_tokens: Mapped[int] = mapped_column(Integer)
    job_ttl_seconds: Mapped[int] = mapped_column(Integer)
    conformance: Mapped[str] = mapped_column(String(16))
    quote: Mapped[Millikudos]
    n: Mapped[int] = mapped_column(SmallInteger, default=1, server_default=text("1"))
    waiting: Mapped[int] = mapped_column(SmallInteger, default=0, server_default=text("0"))
    finished: Mapped[int] = mapped_column(SmallInteger, default=0, server_default=text("0"))
    hold: Mapped[Millikudos] = mapped_column(default=0, server_default=text("0"))
    key_id: Mapped[int | None] = mapped_column(ForeignKey("api_keys.id"))
    faults: Mapped[int] = mapped_column(Integer, default=0, server_default=text("0"))
    fault: Mapped[dict[str, Any] | None] = mapped_column(JSONB(none_as_null=True))
    sort_key: Mapped[float] = mapped_column(Double)
    created_at: Mapped[CreatedAt]
    expires_at: Mapped[datetime] = mapped_column(DateTime(timezone=True))
    ended_at: Mapped[datetime | None] = mapped_column(DateTime(timezone=True))
    bodies_erased_at: Mapped[datetime | None] = mapped_column(DateTime(timezone=True))


class RequestBody(Base):
    """The conversation and its flattened texts, erased some time after the request ended (details D10)."""

    __tablename__ = "request_bodies"

    request_id: Mapped[UUID] = mapped_column(ForeignKey("horde_requests.id"), primary_key=True)
    contract: Mapped[Json]
    prompt: Mapped[str] = mapped_column(Text)
    submitted_prompt: Mapped[str] = mapped_column(Text)


class QueueEntry(Base):
    """The hot queue: one row for each slot of a request that waits to be popped.

    A chat request has one slot, a text request `n`. A slot is one wanted generation: it is in
    the queue, at a worker, or delivered, so that counts can never drift.
    """

    __tablename__ = "queue_entries"
    __table_args__ = (
        Index(
            "ix_queue_entries_class_id_sort_key",
            "class_id",
            "sort_key",
            postgresql_include=["max_length"],
        ),
        Index("ix_queue_entries_user_id_sort_key", "user_id", "sort_key"),
    )

    request_id: Mapped[UUID] = mapped_column(ForeignKey("horde_requests.id"), primary_key=True)
    slot: Mapped[int] = mapped_column(SmallInteger, primary_key=True, default=0, server_default=text("0"))
    user_id: Mapped[int] = mapped_column(BigInteger)
    class_id: Mapped[int] = mapped_column(Integer)
    sort_key: Mapped[float] = mapped_column(Double)
    max_length: Mapped[int] = mapped_column(Integer)
    max_context_length: Mapped[int] = mapped_column(Integer)
    images: Mapped[int] = mapped_column(Integer)
    tools: Mapped[int] = mapped_column(Integer)
    tools_temperature: Mapped[float | None] = mapped_column(Double)
    retried: Mapped[bool] = mapped_column(default=False, server_default=text("false"))
