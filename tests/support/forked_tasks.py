"""The horde's Celery application in a process that used the database before it made its children.

`celery --app tests.support.forked_tasks worker` forks them after this module was read.
"""

import os
from pathlib import Path

from sqlalchemy import text

from tasks.celery_app import celery, runtime
from tests.support.services import wait_until

NAME = "tests.ask_and_compare"
CHILDREN = 4
QUERIES = 300

with runtime().database.statements() as _parents:
    _parents.execute(text("SELECT 1"))


@celery.task(name=NAME)
def ask_and_compare(folder: str, tag: str) -> None:
    """Once every child is there, ask the database for words of this task's own; note how many came back wrong."""
    (Path(folder) / f"{os.getpid()}.child").touch()
    wait_until(lambda: len(list(Path(folder).glob("*.child"))) == CHILDREN, 15, "the children do not run together")
    wrong = 0
    for number in range(QUERIES):
        wanted = f"{tag} {number}"
        with runtime().database.statements() as transaction:
            wrong += transaction.execute(text("SELECT CAST(:word AS text)"), {"word": wanted}).scalar_one() != wanted
    (Path(folder) / f"{tag}.wrong").write_text(str(wrong))
