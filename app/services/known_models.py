"""Which model names are known: declared by some worker, then or now, or in the bundled table (details D1)."""

from sqlalchemy import select

from app.adapters.database import Transaction
from app.domain.contract import refusals
from app.domain.model_sizes import is_in_table
from app.models import KnownModel
from app.services.online import OnlinePool


def require_known(transaction: Transaction, models: tuple[str, ...], pool: OnlinePool) -> None:
    """Accept a list of models of which each is known; one that is known may be offline.

    Raises ContractRefusal (404) for the first that is not.
    """
    online = {declaration.model_id for declaration in pool.declarations}
    doubtful = [name for name in models if name not in online and not is_in_table(name)]
    if not doubtful:
        return
    known = set(transaction.execute(select(KnownModel.name).where(KnownModel.name.in_(doubtful))).scalars())
    for name in doubtful:
        if name not in known:
            raise refusals.model_not_found(name)
