"""What a request has in the object store, and what is still to be done about it (images I1, I6, I7)."""

from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import DateTime, ForeignKey, Index, Integer, String, text
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.orm import Mapped, mapped_column

from app.models.base import Base, CreatedAt


class RequestMedia(Base):
    """A request's folder in the store. The row goes when the folder is empty, so it is the list of what is there.

    `sources` says where each image's bytes or URL are in the object that the submit staged.
    While `next_dispatch_at` is set, images are to be prepared or messages to be offloaded.
    """

    __tablename__ = "request_media"
    __table_args__ = (
        Index(
            "ix_request_media_next_dispatch_at",
            "next_dispatch_at",
            postgresql_where=text("next_dispatch_at IS NOT NULL"),
        ),
    )

    request_id: Mapped[UUID] = mapped_column(ForeignKey("horde_requests.id"), primary_key=True)
    folder: Mapped[str] = mapped_column(String(64), unique=True)
    sources: Mapped[list[dict[str, Any]]] = mapped_column(JSONB)
    attempts: Mapped[int] = mapped_column(Integer, default=0, server_default=text("0"))
    failures: Mapped[int] = mapped_column(Integer, default=0, server_default=text("0"))
    next_dispatch_at: Mapped[datetime | None] = mapped_column(DateTime(timezone=True))
    offloaded_at: Mapped[datetime | None] = mapped_column(DateTime(timezone=True))
    created_at: Mapped[CreatedAt]
