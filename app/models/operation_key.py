"""Operation keys: what makes a repeated submit the same submit (native-api N1)."""

from uuid import UUID

from sqlalchemy import ForeignKey, Index, String
from sqlalchemy.orm import Mapped, mapped_column

from app.models.base import Base, CreatedAt


class OperationKey(Base):
    """A key claimed for an account (for anonymous requesters: for an address), with its body's fingerprint."""

    __tablename__ = "operation_keys"
    __table_args__ = (Index("ix_operation_keys_created_at", "created_at"),)

    user_id: Mapped[int] = mapped_column(ForeignKey("users.id"), primary_key=True)
    scope: Mapped[str] = mapped_column(String(64), primary_key=True)
    key: Mapped[str] = mapped_column(String(255), primary_key=True)
    fingerprint: Mapped[str] = mapped_column(String(64))
    request_id: Mapped[UUID] = mapped_column(ForeignKey("horde_requests.id"))
    created_at: Mapped[CreatedAt]
