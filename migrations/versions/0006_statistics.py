"""Modes, statistics by period, totals of workers, messages to workers, and what their owners may edit."""

import sqlalchemy as sa
from alembic import op

revision = "0006_statistics"
down_revision = "0004_routing"
branch_labels = None
depends_on = None

NOW = sa.text("now()")
ZERO = sa.text("0")


def when(name, **options):
    return sa.Column(name, sa.DateTime(timezone=True), **options)


def upgrade() -> None:
    op.create_table(
        "modes",
        sa.Column("name", sa.String(length=32), nullable=False),
        sa.Column("is_on", sa.Boolean(), nullable=False),
        when("changed_at", server_default=NOW, nullable=False),
        sa.CheckConstraint("name IN ('invite_only_mode', 'maintenance_mode', 'raid_mode')", name=op.f("ck_modes_name")),
        sa.PrimaryKeyConstraint("name", name=op.f("pk_modes")),
    )

    op.add_column("workers", sa.Column("paused", sa.Boolean(), server_default=sa.text("false"), nullable=False))
    op.add_column("workers", sa.Column("info", sa.String(length=1000), nullable=True))
    op.add_column("workers", sa.Column("uptime_seconds", sa.Double(), server_default=ZERO, nullable=False))
    op.add_column("workers", sa.Column("uptime_rewards", sa.BigInteger(), server_default=ZERO, nullable=False))
    op.add_column("workers", when("deleted_at", nullable=True))
    op.drop_constraint("uq_workers_name", "workers", type_="unique")
    op.create_index(
        "uq_workers_name_present", "workers", ["name"], unique=True, postgresql_where=sa.text("deleted_at IS NULL")
    )
    op.execute(
        "UPDATE workers w SET uptime_rewards = paid.amount FROM ("
        " SELECT split_part(business_key, ':', 2)::uuid AS worker_id, sum(amount) AS amount FROM ledger_entries"
        " WHERE kind = 'uptime' GROUP BY 1) paid WHERE paid.worker_id = w.id"
    )

    op.create_table(
        "worker_messages",
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("worker_id", sa.Uuid(), nullable=True),
        sa.Column("author_id", sa.BigInteger(), nullable=False),
        sa.Column("message", sa.String(length=10240), nullable=False),
        sa.Column("origin", sa.String(length=255), nullable=True),
        when("created_at", server_default=NOW, nullable=False),
        when("expires_at", nullable=False),
        sa.ForeignKeyConstraint(["author_id"], ["users.id"], name=op.f("fk_worker_messages_author_id_users")),
        sa.ForeignKeyConstraint(["worker_id"], ["workers.id"], name=op.f("fk_worker_messages_worker_id_workers")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_worker_messages")),
    )
    for column in ("author_id", "expires_at", "worker_id"):
        op.create_index(op.f(f"ix_worker_messages_{column}"), "worker_messages", [column])

    op.create_table(
        "model_statistics",
        sa.Column("period", sa.String(length=8), nullable=False),
        when("starts_at", nullable=False),
        sa.Column("model", sa.String(length=255), nullable=False),
        sa.Column("requests", sa.BigInteger(), nullable=False),
        sa.Column("tokens", sa.BigInteger(), nullable=False),
        sa.CheckConstraint(
            "period IN ('day', 'hour', 'minute', 'month', 'total')", name=op.f("ck_model_statistics_period")
        ),
        sa.PrimaryKeyConstraint("period", "starts_at", "model", name=op.f("pk_model_statistics")),
    )
    op.create_table(
        "worker_totals",
        sa.Column("worker_id", sa.Uuid(), nullable=False),
        *(
            sa.Column(name, sa.BigInteger(), server_default=ZERO, nullable=False)
            for name in ("fulfilled", "uncompleted", "tokens", "rewards")
        ),
        sa.ForeignKeyConstraint(["worker_id"], ["workers.id"], name=op.f("fk_worker_totals_worker_id_workers")),
        sa.PrimaryKeyConstraint("worker_id", name=op.f("pk_worker_totals")),
    )
    op.create_index(
        "ix_generations_ended_at", "generations", ["ended_at"], postgresql_where=sa.text("ended_at IS NOT NULL")
    )
    # Everything that ended before is counted too, from the first one on.
    op.execute(
        "INSERT INTO heartbeats (name, at)"
        " SELECT 'statistics', COALESCE((SELECT min(ended_at) FROM generations), now()) - interval '1 second'"
    )
    op.create_index("ix_balances_amount", "balances", ["amount", "user_id"])


def downgrade() -> None:
    op.drop_index("ix_balances_amount", table_name="balances")
    op.execute("DELETE FROM heartbeats WHERE name = 'statistics'")
    op.drop_index(
        "ix_generations_ended_at", table_name="generations", postgresql_where=sa.text("ended_at IS NOT NULL")
    )
    op.drop_table("worker_totals")
    op.drop_table("model_statistics")
    op.drop_table("worker_messages")
    op.drop_index("uq_workers_name_present", table_name="workers", postgresql_where=sa.text("deleted_at IS NULL"))
    op.execute("UPDATE workers SET name = left(name, 60) || ' ' || id WHERE deleted_at IS NOT NULL")
    op.create_unique_constraint("uq_workers_name", "workers", ["name"])
    for column in ("deleted_at", "uptime_rewards", "uptime_seconds", "info", "paused"):
        op.drop_column("workers", column)
    op.drop_table("modes")
