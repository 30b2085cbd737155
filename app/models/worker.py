"""The registry of workers: who they are and what they last declared."""

from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import DateTime, Double, ForeignKey, Index, Integer, String, Text, text
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.orm import Mapped, mapped_column

from app.models.base import Base, CreatedAt, Millikudos, Timestamp, UuidKey


class Worker(Base):
    """A volunteer's machine. Its name belongs to the first that used it, until the worker is deleted.

    A deleted worker keeps its row, which its generations name.
    """

    __tablename__ = "workers"
    __table_args__ = (
        Index("ix_workers_last_seen_at", "last_seen_at"),
        Index("ix_workers_address", "address"),
        Index("uq_workers_name_present", "name", unique=True, postgresql_where=text("deleted_at IS NULL")),
    )

    id: Mapped[UuidKey]
    user_id: Mapped[int] = mapped_column(ForeignKey("users.id"), index=True)
    name: Mapped[str] = mapped_column(String(100))
    declaration: Mapped[dict[str, Any]] = mapped_column(JSONB)
    maintenance: Mapped[bool] = mapped_column(default=False, server_default=text("false"))
    maintenance_message: Mapped[str | None] = mapped_column(Text)
    paused: Mapped[bool] = mapped_column(default=False, server_default=text("false"))
    info: Mapped[str | None] = mapped_column(String(1000))
    created_at: Mapped[CreatedAt]
    last_seen_at: Mapped[datetime] = mapped_column(DateTime(timezone=True))
    aborts: Mapped[int] = mapped_column(Integer, default=0, server_default=text("0"))
    aborts_since: Mapped[datetime | None] = mapped_column(DateTime(timezone=True))
    failed_at: Mapped[datetime | None] = mapped_column(DateTime(timezone=True))
    uptime_from: Mapped[datetime | None] = mapped_column(DateTime(timezone=True))
    uptime_seconds: Mapped[float] = mapped_column(Double, default=0, server_default=text("0"))
    uptime_rewards: Mapped[Millikudos] = mapped_column(default=0, server_default=text("0"))
    address: Mapped[str | None] = mapped_column(String(64))
    deleted_at: Mapped[datetime | None] = mapped_column(DateTime(timezone=True))


class WorkerMessage(Base):
    """A message that pops carry until it expires: to one worker, or to all."""

    __tablename__ = "worker_messages"

    id: Mapped[UuidKey]
    worker_id: Mapped[UUID | None] = mapped_column(ForeignKey("workers.id"), index=True)
    author_id: Mapped[int] = mapped_column(ForeignKey("users.id"), index=True)
    message: Mapped[str] = mapped_column(String(10_240))
    origin: Mapped[str | None] = mapped_column(String(255))
    created_at: Mapped[CreatedAt]
    expires_at: Mapped[Timestamp] = mapped_column(index=True)


class WorkerSpeed(Base):
    """How fast a worker was measured to serve a model, over its newest accepted generations."""

    __tablename__ = "worker_speeds"

    worker_id: Mapped[UUID] = mapped_column(ForeignKey("workers.id"), primary_key=True)
    model: Mapped[str] = mapped_column(String(255), primary_key=True)
    tokens_per_second: Mapped[float] = mapped_column(Double)
    samples: Mapped[int] = mapped_column(Integer)
    measured_at: Mapped[CreatedAt]
