"""The registry of workers: who they are and what they last declared."""

from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import DateTime, Double, ForeignKey, Index, Integer, String, Text, text
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.orm import Mapped, mapped_column

from app.models.base import Base, CreatedAt, UuidKey


class Worker(Base):
    """A volunteer's machine. Its name is unique over the horde and belongs to the first that used it."""

    __tablename__ = "workers"
    __table_args__ = (Index("ix_workers_last_seen_at", "last_seen_at"),)

    id: Mapped[UuidKey]
    user_id: Mapped[int] = mapped_column(ForeignKey("users.id"), index=True)
    name: Mapped[str] = mapped_column(String(100), unique=True)
    declaration: Mapped[dict[str, Any]] = mapped_column(JSONB)
    maintenance: Mapped[bool] = mapped_column(default=False, server_default=text("false"))
    maintenance_message: Mapped[str | None] = mapped_column(Text)
    created_at: Mapped[CreatedAt]
    last_seen_at: Mapped[datetime] = mapped_column(DateTime(timezone=True))
    aborts: Mapped[int] = mapped_column(Integer, default=0, server_default=text("0"))
    aborts_since: Mapped[datetime | None] = mapped_column(DateTime(timezone=True))
    failed_at: Mapped[datetime | None] = mapped_column(DateTime(timezone=True))
    uptime_from: Mapped[datetime | None] = mapped_column(DateTime(timezone=True))


class WorkerSpeed(Base):
    """How fast a worker was measured to serve a model, over its newest accepted generations."""

    __tablename__ = "worker_speeds"

    worker_id: Mapped[UUID] = mapped_column(ForeignKey("workers.id"), primary_key=True)
    model: Mapped[str] = mapped_column(String(255), primary_key=True)
    tokens_per_second: Mapped[float] = mapped_column(Double)
    samples: Mapped[int] = mapped_column(Integer)
    measured_at: Mapped[CreatedAt]
