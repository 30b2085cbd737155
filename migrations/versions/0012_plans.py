"""Plans that were made at a quiet moment do for a busy one (decision 0090)."""

from alembic import op
import sqlalchemy as sa

revision = "0012_plans"
down_revision = "0011_incidents"
branch_labels = None
depends_on = None

INDEX = "ix_horde_requests_expires_at_open"
KEYS_BY_AGE = "ix_operation_keys_created_at"
ALL_UNFOLDED = "ix_ledger_entries_id_unfolded"
"""Told the planner that reading all unfolded entries is as cheap as reading an account's."""

WORKED_OFF = (("generations", "state", "varchar(16)"), ("ledger_entries", "folded", "boolean"))
"""Columns of which nearly every row has come to one value, with their types: the others are the work there is."""

CLEARS_STATISTICS = (18, 0)
"""The first version of PostgreSQL that can forget a column's statistics."""


def upgrade() -> None:
    # Each statement by itself, and again without harm: locks on several tables at once meet those of a horde at work.
    with op.get_context().autocommit_block():
        for table, column, its_type in WORKED_OFF:
            op.execute(f"ALTER TABLE {table} ALTER COLUMN {column} SET STATISTICS 0")
            _forget_statistics(table, column, its_type)
        is_open = sa.text("ended_at IS NULL")
        op.drop_index(INDEX, table_name="horde_requests", if_exists=True)
        op.create_index(INDEX, "horde_requests", ["expires_at"], postgresql_where=is_open, if_not_exists=True)
        op.drop_index(ALL_UNFOLDED, table_name="ledger_entries", if_exists=True)
        op.create_index(KEYS_BY_AGE, "operation_keys", ["created_at"], if_not_exists=True)


def _forget_statistics(table: str, column: str, its_type: str) -> None:
    """Forget what ANALYZE has gathered, which would stay as it is from now on."""
    if (op.get_bind().dialect.server_version_info or ()) >= CLEARS_STATISTICS:
        op.execute(f"SELECT pg_clear_attribute_stats(current_schema()::text, '{table}', '{column}', false)")
    else:
        # To the type that it has: no row is written anew, but partial indexes are, while the table is locked.
        op.execute(f"ALTER TABLE {table} ALTER COLUMN {column} TYPE {its_type}")


def downgrade() -> None:
    op.drop_index(KEYS_BY_AGE, table_name="operation_keys")
    op.create_index(ALL_UNFOLDED, "ledger_entries", ["id"], postgresql_where=sa.text("NOT folded"))
    op.drop_index(INDEX, table_name="horde_requests")
    is_open = sa.text("state IN ('preparing', 'queued', 'processing')")
    op.create_index(INDEX, "horde_requests", ["expires_at"], postgresql_where=is_open)
    for table, column, _ in WORKED_OFF:
        op.execute(f"ALTER TABLE {table} ALTER COLUMN {column} SET STATISTICS -1")
