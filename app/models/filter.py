"""The operator's moderation filters (native API N6)."""

from sqlalchemy import CheckConstraint, Identity, Integer, String, Text
from sqlalchemy.orm import Mapped, mapped_column

from app.domain.moderation import FilterKind
from app.models.base import Base, CreatedAt, one_of


class Filter(Base):
    """One pattern, and what happens to text that it matches."""

    __tablename__ = "filters"
    __table_args__ = (
        CheckConstraint(one_of("kind", FilterKind), name="kind"),
        CheckConstraint("(kind = 'replace') = (replacement IS NOT NULL)", name="replacement"),
    )

    id: Mapped[int] = mapped_column(Integer, Identity(), primary_key=True)
    kind: Mapped[str] = mapped_column(String(16))
    pattern: Mapped[str] = mapped_column(Text)
    replacement: Mapped[str | None] = mapped_column(Text)
    description: Mapped[str | None] = mapped_column(String(255))
    created_at: Mapped[CreatedAt]
