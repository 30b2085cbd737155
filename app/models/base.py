"""Declarative base: constraint names that migrations can rely on, and the common column types."""

from collections.abc import Iterable
from datetime import datetime
from enum import StrEnum
from typing import Annotated, Any
from uuid import UUID

from sqlalchemy import BigInteger, DateTime, MetaData, func
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.orm import DeclarativeBase, mapped_column

NAMING = {
    "ix": "ix_%(table_name)s_%(column_0_N_name)s",
    "uq": "uq_%(table_name)s_%(column_0_N_name)s",
    "ck": "ck_%(table_name)s_%(constraint_name)s",
    "fk": "fk_%(table_name)s_%(column_0_N_name)s_%(referred_table_name)s",
    "pk": "pk_%(table_name)s",
}

UuidKey = Annotated[UUID, mapped_column(primary_key=True)]
SequenceKey = Annotated[int, mapped_column(BigInteger, primary_key=True, autoincrement=True)]
Millikudos = Annotated[int, mapped_column(BigInteger)]
Timestamp = Annotated[datetime, mapped_column(DateTime(timezone=True))]
CreatedAt = Annotated[datetime, mapped_column(DateTime(timezone=True), server_default=func.now())]
Json = Annotated[dict[str, Any], mapped_column(JSONB)]


class Base(DeclarativeBase):
    """Root of all tables."""

    metadata = MetaData(naming_convention=NAMING)


def one_of(column: str, values: Iterable[StrEnum]) -> str:
    """Return the SQL condition that a column holds one of these enum values."""
    return f"{column} IN ({', '.join(repr(value.value) for value in sorted(values))})"
