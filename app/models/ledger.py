"""The append-only ledger of kudos (architecture A6)."""

from sqlalchemy import ForeignKey, Index, String, UniqueConstraint, text
from sqlalchemy.orm import Mapped, mapped_column

from app.models.base import Base, CreatedAt, Millikudos, SequenceKey


class LedgerEntry(Base):
    """One side of one movement. The entries of a business key sum to zero."""

    __tablename__ = "ledger_entries"
    __table_args__ = (
        UniqueConstraint("business_key", "kind", "user_id"),
        Index("ix_ledger_entries_id_unfolded", "id", postgresql_where=text("NOT folded")),
        Index("ix_ledger_entries_user_id_unfolded", "user_id", postgresql_where=text("NOT folded")),
    )

    id: Mapped[SequenceKey]
    business_key: Mapped[str] = mapped_column(String(200))
    kind: Mapped[str] = mapped_column(String(32))
    user_id: Mapped[int] = mapped_column(ForeignKey("users.id"))
    amount: Mapped[Millikudos]
    folded: Mapped[bool] = mapped_column(default=False, server_default=text("false"))
    created_at: Mapped[CreatedAt]
