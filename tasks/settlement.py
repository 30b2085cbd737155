"""Tasks of the `settlement` queue: the ledger and its balances."""

from app.domain.task_names import TaskName
from app.services.kudos import fold_balances
from app.services.settle import settle_batch
from tasks.celery_app import celery, runtime


@celery.task(name=TaskName.SETTLE_BATCH.value, max_retries=2, default_retry_delay=1)
def settle() -> None:
    """Book every verified generation."""
    settle_batch(runtime())


@celery.task(name=TaskName.FOLD_BALANCES.value, max_retries=0)
def fold() -> None:
    """Fold new ledger entries into balances."""
    fold_balances(runtime())
