"""What accounts report of each other, for moderators and operators."""

from datetime import datetime
from uuid import UUID

from sqlalchemy import CheckConstraint, DateTime, ForeignKey, Index, String, text
from sqlalchemy.orm import Mapped, mapped_column

from app.domain.reports import ReportKind
from app.models.base import Base, CreatedAt, SequenceKey, one_of


class Report(Base):
    """One report: `target` as the reporter named it, and whom it turned out to be about. Open until it is closed."""

    __tablename__ = "reports"
    __table_args__ = (
        CheckConstraint(one_of("kind", ReportKind), name="kind"),
        Index(
            "uq_reports_reporter_id_kind_target_open",
            "reporter_id",
            "kind",
            "target",
            unique=True,
            postgresql_where=text("closed_at IS NULL"),
        ),
        Index("ix_reports_id_open", "id", postgresql_where=text("closed_at IS NULL")),
        Index("ix_reports_user_id", "user_id"),
    )

    id: Mapped[SequenceKey]
    reporter_id: Mapped[int] = mapped_column(ForeignKey("users.id"))
    kind: Mapped[str] = mapped_column(String(16))
    target: Mapped[str] = mapped_column(String(64))
    user_id: Mapped[int] = mapped_column(ForeignKey("users.id"))
    worker_id: Mapped[UUID | None] = mapped_column(ForeignKey("workers.id"))
    request_id: Mapped[UUID | None] = mapped_column(ForeignKey("horde_requests.id"))
    reason: Mapped[str] = mapped_column(String(1000))
    created_at: Mapped[CreatedAt]
    closed_at: Mapped[datetime | None] = mapped_column(DateTime(timezone=True))
    note: Mapped[str | None] = mapped_column(String(1000))
