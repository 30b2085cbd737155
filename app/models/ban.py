"""Who is kept out by the operator: accounts, and networks that callers come from."""

from datetime import datetime
from ipaddress import IPv4Network, IPv6Network

from sqlalchemy import CheckConstraint, DateTime, ForeignKey, String
from sqlalchemy.dialects.postgresql import CIDR
from sqlalchemy.orm import Mapped, mapped_column

from app.models.base import Base, CreatedAt, SequenceKey


class Ban(Base):
    """One ban, of an account or of a network; in force until it ends or is taken back, which deletes it."""

    __tablename__ = "bans"
    __table_args__ = (CheckConstraint("(user_id IS NULL) <> (network IS NULL)", name="one_target"),)

    id: Mapped[SequenceKey]
    user_id: Mapped[int | None] = mapped_column(ForeignKey("users.id"), unique=True)
    network: Mapped[IPv4Network | IPv6Network | None] = mapped_column(CIDR, unique=True)
    reason: Mapped[str | None] = mapped_column(String(1000))
    created_at: Mapped[CreatedAt]
    ends_at: Mapped[datetime | None] = mapped_column(DateTime(timezone=True))
