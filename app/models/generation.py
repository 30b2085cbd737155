"""Generations: one worker's attempts at requests, and what they delivered."""

from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import BigInteger, CheckConstraint, DateTime, ForeignKey, Index, Integer, SmallInteger, String, text
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.orm import Mapped, mapped_column

from app.domain.states import GenerationState
from app.models.base import Base, CreatedAt, UuidKey, one_of


class Generation(Base):
    """One attempt of a request by one worker (the wire calls it a job)."""

    __tablename__ = "generations"
    __table_args__ = (
        CheckConstraint(one_of("state", GenerationState), name="state"),
        CheckConstraint("(charge IS NULL) = (reward IS NULL)", name="amounts_paired"),
        Index(
            "uq_generations_request_id_slot_accepted",
            "request_id",
            "slot",
            unique=True,
            postgresql_where=text("state IN ('verified', 'settled')"),
        ),
        Index(
            "ix_generations_worker_id_ended_at_accepted",
            "worker_id",
            "ended_at",
            postgresql_where=text("state IN ('verified', 'settled')"),
        ),
        Index("ix_generations_deadline_at_leased", "deadline_at", postgresql_where=text("state = 'leased'")),
        Index(
            "ix_generations_next_dispatch_at",
            "state",
            "next_dispatch_at",
            postgresql_where=text("state IN ('submitted', 'verified')"),
        ),
        Index(
            "uq_generations_worker_id_pop_key",
            "worker_id",
            "pop_key",
            unique=True,
            postgresql_where=text("pop_key IS NOT NULL"),
        ),
    )

    id: Mapped[UuidKey]
    request_id: Mapped[UUID] = mapped_column(ForeignKey("horde_requests.id"), index=True)
    worker_id: Mapped[UUID] = mapped_column(ForeignKey("workers.id"))
    slot: Mapped[int] = mapped_column(SmallInteger, default=0, server_default=text("0"))
    state: Mapped[str] = mapped_column(String(16))
    model: Mapped[str] = mapped_column(String(255))
    pop_key: Mapped[str | None] = mapped_column(String(255))
    streamed: Mapped[bool] = mapped_column(default=False, server_default=text("false"))
    popped_at: Mapped[CreatedAt]
    deadline_at: Mapped[datetime] = mapped_column(DateTime(timezone=True))
    submitted_at: Mapped[datetime | None] = mapped_column(DateTime(timezone=True))
    ended_at: Mapped[datetime | None] = mapped_column(DateTime(timezone=True))
    tokens: Mapped[int | None] = mapped_column(Integer)
    charge: Mapped[int | None] = mapped_column(BigInteger)
    reward: Mapped[int | None] = mapped_column(BigInteger)
    charge_basis: Mapped[str | None] = mapped_column(String(32))
    fault: Mapped[str | None] = mapped_column(String(64))
    refusal: Mapped[str | None] = mapped_column(String(1000))
    attempts: Mapped[int] = mapped_column(Integer, default=0, server_default=text("0"))
    next_dispatch_at: Mapped[datetime | None] = mapped_column(DateTime(timezone=True))


class Reply(Base):
    """What a worker submitted for a generation; after verification, what the requester reads."""

    __tablename__ = "replies"

    generation_id: Mapped[UUID] = mapped_column(ForeignKey("generations.id"), primary_key=True)
    body: Mapped[dict[str, Any]] = mapped_column(JSONB)
