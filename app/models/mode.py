"""The horde's modes: flags that an operator sets for everybody (wire reference 2.8)."""

from sqlalchemy import CheckConstraint, String, func
from sqlalchemy.orm import Mapped, mapped_column

from app.domain.modes import Mode
from app.models.base import Base, Timestamp, one_of


class ModeFlag(Base):
    """A mode that was ever set, and whether it is on. A mode without a row is off."""

    __tablename__ = "modes"
    __table_args__ = (CheckConstraint(one_of("name", Mode), name="name"),)

    name: Mapped[str] = mapped_column(String(32), primary_key=True)
    is_on: Mapped[bool]
    changed_at: Mapped[Timestamp] = mapped_column(server_default=func.now())
