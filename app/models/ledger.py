"""The append-only ledger of kudos, what is summed from it, and transfers (architecture A6)."""

from enum import StrEnum

from sqlalchemy import BigInteger, CheckConstraint, ForeignKey, Index, Integer, String, UniqueConstraint, text
from sqlalchemy.orm import Mapped, mapped_column

from app.models.base import Base, CreatedAt, Millikudos, SequenceKey, UuidKey, one_of


class Pocket(StrEnum):
    """Where an account's kudos are."""

    SPENDABLE = "spendable"
    HELD = "held"
    ESCROW = "escrow"


class LedgerEntry(Base):
    """One side of one movement. The entries of a business key sum to zero."""

    __tablename__ = "ledger_entries"
    __table_args__ = (
        UniqueConstraint("business_key", "kind", "user_id"),
        CheckConstraint(one_of("pocket", Pocket), name="pocket"),
        Index("ix_ledger_entries_user_id_unfolded", "user_id", postgresql_where=text("NOT folded")),
        Index(
            "ix_ledger_entries_key_id_unfolded",
            "key_id",
            postgresql_where=text("key_id IS NOT NULL AND NOT folded"),
        ),
    )

    id: Mapped[SequenceKey]
    business_key: Mapped[str] = mapped_column(String(200))
    kind: Mapped[str] = mapped_column(String(32))
    user_id: Mapped[int] = mapped_column(ForeignKey("users.id"))
    pocket: Mapped[str] = mapped_column(String(16), default=Pocket.SPENDABLE.value, server_default=text("'spendable'"))
    amount: Mapped[Millikudos]
    tokens: Mapped[int] = mapped_column(Integer, default=0, server_default=text("0"))
    key_id: Mapped[int | None] = mapped_column(ForeignKey("api_keys.id"))
    folded: Mapped[bool] = mapped_column(default=False, server_default=text("false"))
    created_at: Mapped[CreatedAt]


class KudosTotal(Base):
    """An account's folded entries of one kind: for figures about it, never for what it may spend."""

    __tablename__ = "kudos_totals"

    user_id: Mapped[int] = mapped_column(ForeignKey("users.id"), primary_key=True, autoincrement=False)
    kind: Mapped[str] = mapped_column(String(32), primary_key=True)
    amount: Mapped[Millikudos] = mapped_column(default=0, server_default=text("0"))
    entries: Mapped[int] = mapped_column(BigInteger, default=0, server_default=text("0"))
    tokens: Mapped[int] = mapped_column(BigInteger, default=0, server_default=text("0"))


class KudosTransfer(Base):
    """A gift of kudos from one account to another, kept to answer a repeated one."""

    __tablename__ = "kudos_transfers"
    __table_args__ = (
        UniqueConstraint("source_id", "idempotency_key"),
        CheckConstraint("amount > 0", name="amount"),
        CheckConstraint("source_id <> target_id", name="two_accounts"),
        Index("ix_kudos_transfers_pair", "source_id", "target_id", "created_at"),
    )

    id: Mapped[UuidKey]
    source_id: Mapped[int] = mapped_column(ForeignKey("users.id"))
    target_id: Mapped[int] = mapped_column(ForeignKey("users.id"))
    target: Mapped[str] = mapped_column(String(36))
    amount: Mapped[Millikudos]
    idempotency_key: Mapped[str | None] = mapped_column(String(255))
    created_at: Mapped[CreatedAt]
