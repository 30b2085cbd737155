"""When the horde itself was away, so that its workers are not blamed for it (native-api N4)."""

from sqlalchemy import String
from sqlalchemy.orm import Mapped, mapped_column

from app.models.base import Base, SequenceKey, Timestamp


class Heartbeat(Base):
    """When a part of the horde last did its work."""

    __tablename__ = "heartbeats"

    name: Mapped[str] = mapped_column(String(32), primary_key=True)
    at: Mapped[Timestamp]


class Outage(Base):
    """A time in which that part did not work."""

    __tablename__ = "outages"

    id: Mapped[SequenceKey]
    began_at: Mapped[Timestamp]
    ended_at: Mapped[Timestamp] = mapped_column(index=True)
