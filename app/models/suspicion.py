"""What made an account, or a worker of it, suspicious (wire reference 4.7 and 4.11)."""

from uuid import UUID

from sqlalchemy import CheckConstraint, ForeignKey, Index, String
from sqlalchemy.orm import Mapped, mapped_column

from app.domain.suspicion import Suspected
from app.models.base import Base, CreatedAt, SequenceKey, one_of


class Suspicion(Base):
    """One occasion; a moderator's reset deletes an account's."""

    __tablename__ = "suspicions"
    __table_args__ = (
        CheckConstraint(one_of("reason", Suspected), name="reason"),
        Index("ix_suspicions_user_id", "user_id"),
        Index("ix_suspicions_worker_id", "worker_id"),
    )

    id: Mapped[SequenceKey]
    user_id: Mapped[int] = mapped_column(ForeignKey("users.id"))
    worker_id: Mapped[UUID | None] = mapped_column(ForeignKey("workers.id"))
    reason: Mapped[str] = mapped_column(String(32))
    created_at: Mapped[CreatedAt]
