"""Runs migrations one at a time, with short lock and statement time-outs.

An upgrade runs while the old version still serves: one that cannot get its lock
gives up instead of queueing every request behind it.
"""

from alembic import context
from sqlalchemy import create_engine, pool, text

from app.models import Base
from config.settings import load_settings

LOCK_ID = 4_173_900
LOCK_TIMEOUT = "4s"
STATEMENT_TIMEOUT = "60s"


def run() -> None:
    """Bring the database that DATABASE_URL names to the wanted revision."""
    engine = create_engine(load_settings().database_url, poolclass=pool.NullPool)
    with engine.connect() as connection:
        connection.execute(text(f"SET lock_timeout = '{LOCK_TIMEOUT}'"))
        connection.execute(text(f"SET statement_timeout = '{STATEMENT_TIMEOUT}'"))
        connection.execute(text("SELECT pg_advisory_lock(:id)"), {"id": LOCK_ID})
        connection.commit()
        context.configure(connection=connection, target_metadata=Base.metadata, transaction_per_migration=True)
        with context.begin_transaction():
            context.run_migrations()
        connection.execute(text("SELECT pg_advisory_unlock(:id)"), {"id": LOCK_ID})
        connection.commit()


run()
