"""What an operator tells everybody while something is wrong (operations O4)."""

from datetime import datetime

from sqlalchemy import DateTime, String
from sqlalchemy.orm import Mapped, mapped_column

from app.models.base import Base, CreatedAt, SequenceKey

LONGEST_INCIDENT = 500


class Incident(Base):
    """A line for the status page, shown until it ends."""

    __tablename__ = "incidents"

    id: Mapped[SequenceKey]
    message: Mapped[str] = mapped_column(String(LONGEST_INCIDENT))
    created_at: Mapped[CreatedAt]
    ended_at: Mapped[datetime | None] = mapped_column(DateTime(timezone=True))
