"""Names of models that some worker declared, then or now (details D1)."""

from sqlalchemy import String
from sqlalchemy.orm import Mapped, mapped_column

from app.models.base import Base, CreatedAt


class KnownModel(Base):
    """A chat model that a request may list although nobody serves it right now."""

    __tablename__ = "known_models"

    name: Mapped[str] = mapped_column(String(255), primary_key=True)
    created_at: Mapped[CreatedAt]
