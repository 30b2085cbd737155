"""What was delivered, counted once and kept by period (native-api N2)."""

from datetime import datetime
from uuid import UUID

from sqlalchemy import BigInteger, CheckConstraint, DateTime, ForeignKey, String, text
from sqlalchemy.orm import Mapped, mapped_column

from app.domain.periods import Period
from app.models.base import Base, Millikudos, one_of


class ModelStatistic(Base):
    """Generations of one model that were delivered in one period, and the tokens that they count for."""

    __tablename__ = "model_statistics"
    __table_args__ = (CheckConstraint(one_of("period", Period), name="period"),)

    period: Mapped[str] = mapped_column(String(8), primary_key=True)
    starts_at: Mapped[datetime] = mapped_column(DateTime(timezone=True), primary_key=True)
    model: Mapped[str] = mapped_column(String(255), primary_key=True)
    requests: Mapped[int] = mapped_column(BigInteger)
    tokens: Mapped[int] = mapped_column(BigInteger)


class WorkerTotal(Base):
    """What one worker ever delivered, earned by it, and failed."""

    __tablename__ = "worker_totals"

    worker_id: Mapped[UUID] = mapped_column(ForeignKey("workers.id"), primary_key=True)
    fulfilled: Mapped[int] = mapped_column(BigInteger, default=0, server_default=text("0"))
    uncompleted: Mapped[int] = mapped_column(BigInteger, default=0, server_default=text("0"))
    tokens: Mapped[int] = mapped_column(BigInteger, default=0, server_default=text("0"))
    rewards: Mapped[Millikudos] = mapped_column(default=0, server_default=text("0"))
