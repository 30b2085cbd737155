"""Stands around every statement that this process sends to PostgreSQL."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from typing import Any
from unittest.mock import patch

from sqlalchemy import Executable, Result

from app.adapters.database import Transaction


@contextmanager
def around_statements(around: Callable[[Executable], AbstractContextManager[None]]) -> Iterator[None]:
    """While the block runs, enter what `around` makes of a statement, and leave it when that was answered."""
    plain = Transaction.execute

    def execute(self: Transaction, statement: Executable, values: Mapping[str, Any] | None = None) -> Result[Any]:
        with around(statement):
            return plain(self, statement, values)

    with patch.object(Transaction, "execute", execute):
        yield
