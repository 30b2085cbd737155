"""Tasks of the `settlement` queue: the ledger, its balances, and what owners earn beside replies."""

from app.domain.task_names import TaskName
from app.services.escrow import review_escrow
from app.services.kudos import fold_balances
from app.services.settle import settle_batch
from app.services.uptime import reward_uptime
from tasks.celery_app import celery, runtime


@celery.task(name=TaskName.SETTLE_BATCH.value, max_retries=2, default_retry_delay=1)
def settle() -> None:
    """Book every verified generation."""
    settle_batch(runtime())


@celery.task(name=TaskName.FOLD_BALANCES.value, max_retries=0)
def fold() -> None:
    """Fold new ledger entries into balances."""
    fold_balances(runtime())


@celery.task(name=TaskName.REVIEW_ESCROW.value, max_retries=0)
def review() -> None:
    """Trust owners who earned it, and release what waited for them."""
    review_escrow(runtime())


@celery.task(name=TaskName.REWARD_UPTIME.value, max_retries=0)
def uptime() -> None:
    """Reward workers whose window is full."""
    reward_uptime(runtime())
