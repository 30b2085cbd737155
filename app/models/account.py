"""Accounts, their roles, their keys and their folded balances."""

from datetime import datetime
from enum import StrEnum
from typing import Annotated
from uuid import UUID

from sqlalchemy import BigInteger, CheckConstraint, DateTime, ForeignKey, Index, Integer, String, Text, text
from sqlalchemy.orm import Mapped, mapped_column

from app.models.base import Base, CreatedAt, Millikudos, SequenceKey, one_of


class AccountKind(StrEnum):
    """What an account is for."""

    USER = "user"
    ADMIN = "admin"
    SERVICE = "service"
    ANONYMOUS = "anonymous"
    SYSTEM = "system"


Flag = Annotated[bool, mapped_column(default=False, server_default=text("false"))]


class User(Base):
    """An account. Its id is permanent; `Name#id` is its alias on the wire."""

    __tablename__ = "users"
    __table_args__ = (
        CheckConstraint(one_of("kind", AccountKind), name="kind"),
        Index("uq_users_username_system", "username", unique=True, postgresql_where=text("kind = 'system'")),
        Index(
            "ix_users_previous_passkey_sha256",
            "previous_passkey_sha256",
            postgresql_where=text("previous_passkey_sha256 IS NOT NULL"),
        ),
    )

    id: Mapped[int] = mapped_column(BigInteger, primary_key=True, autoincrement=True)
    username: Mapped[str] = mapped_column(String(100))
    kind: Mapped[str] = mapped_column(String(16), default=AccountKind.USER.value)
    trusted: Mapped[Flag]
    moderator: Mapped[Flag]
    flagged: Mapped[Flag]
    education: Mapped[Flag]
    customizer: Mapped[Flag]
    vpn: Mapped[Flag]
    special: Mapped[Flag]
    deleted: Mapped[Flag]
    concurrency: Mapped[int | None] = mapped_column(Integer)
    worker_invited: Mapped[int] = mapped_column(Integer, default=0, server_default=text("0"))
    public_workers: Mapped[Flag]
    contact: Mapped[str | None] = mapped_column(String(500))
    admin_comment: Mapped[str | None] = mapped_column(Text)
    passkey_sha256: Mapped[str | None] = mapped_column(String(64), unique=True)
    previous_passkey_sha256: Mapped[str | None] = mapped_column(String(64))
    previous_passkey_until: Mapped[datetime | None] = mapped_column(DateTime(timezone=True))
    erased_at: Mapped[datetime | None] = mapped_column(DateTime(timezone=True))
    created_at: Mapped[CreatedAt]


class ApiKey(Base):
    """A key that speaks for an account. Only its digest is kept; the key is shown once.

    A shared key is one that others get to ask with: its id is the key, so it is kept.
    """

    __tablename__ = "api_keys"
    __table_args__ = (CheckConstraint("shared_id IS NOT NULL OR max_text_tokens IS NULL", name="shared_has_limits"),)

    id: Mapped[SequenceKey]
    user_id: Mapped[int] = mapped_column(ForeignKey("users.id"), index=True)
    key_sha256: Mapped[str] = mapped_column(String(64), unique=True)
    name: Mapped[str] = mapped_column(String(255))
    created_at: Mapped[CreatedAt]
    expires_at: Mapped[datetime | None] = mapped_column(DateTime(timezone=True))
    revoked_at: Mapped[datetime | None] = mapped_column(DateTime(timezone=True))
    kudos_limit: Mapped[int | None] = mapped_column(BigInteger)
    shared_id: Mapped[UUID | None] = mapped_column(unique=True)
    max_text_tokens: Mapped[int | None] = mapped_column(Integer)


class Balance(Base):
    """An account's folded ledger, a column a pocket: what it holds is this plus its entries not yet folded."""

    __tablename__ = "balances"
    __table_args__ = (Index("ix_balances_amount", "amount", "user_id"),)

    user_id: Mapped[int] = mapped_column(ForeignKey("users.id"), primary_key=True, autoincrement=False)
    amount: Mapped[Millikudos] = mapped_column(default=0, server_default=text("0"))
    escrow: Mapped[Millikudos] = mapped_column(default=0, server_default=text("0"))
    held: Mapped[Millikudos] = mapped_column(default=0, server_default=text("0"))


class KeySpending(Base):
    """What was spent with a key that has a limit, folded like a balance."""

    __tablename__ = "key_spending"

    key_id: Mapped[int] = mapped_column(ForeignKey("api_keys.id"), primary_key=True, autoincrement=False)
    amount: Mapped[Millikudos] = mapped_column(default=0, server_default=text("0"))
