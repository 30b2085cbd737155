"""Routing: slots, worker facts, measured speeds, outages; a standing that counts slots."""

import sqlalchemy as sa
from alembic import op

revision = "0004_routing"
down_revision = "0003_kudos"
branch_labels = None
depends_on = None

ACCEPTED = "state IN ('verified', 'settled')"

# As before, but for what waits and what open requests may still cost.
STANDING = """
CREATE OR REPLACE FUNCTION locked_standing(account bigint, metered_key bigint)
RETURNS TABLE (waiting bigint, spendable bigint, committed bigint)
LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    PERFORM pg_advisory_xact_lock(hashtextextended('account', account));
    RETURN QUERY SELECT
        (SELECT {waiting} FROM horde_requests r
         WHERE r.user_id = account AND r.state IN ('preparing', 'queued')),
        (COALESCE((SELECT b.amount FROM balances b WHERE b.user_id = account), 0)
         + COALESCE((SELECT sum(e.amount) FROM ledger_entries e
                     WHERE e.user_id = account AND NOT e.folded AND e.pocket = 'spendable'), 0))::bigint,
        (CASE WHEN metered_key IS NULL THEN 0 ELSE
            COALESCE((SELECT s.amount FROM key_spending s WHERE s.key_id = metered_key), 0)
            - COALESCE((SELECT sum(e.amount) FROM ledger_entries e
                        WHERE e.key_id = metered_key AND NOT e.folded), 0)
            + COALESCE((SELECT sum({open}) FROM horde_requests r
                        WHERE r.key_id = metered_key AND r.state IN ('preparing', 'queued', 'processing')), 0)
            + COALESCE((SELECT sum(g.charge) FROM generations g JOIN horde_requests r ON r.id = g.request_id
                        WHERE g.state = 'verified' AND r.key_id = metered_key), 0)
         END)::bigint;
END
$$
"""
STANDING_OF_REQUESTS = STANDING.format(waiting="count(*)", open="r.quote")
# A slot that was delivered is in the key's spending, or verified: its request may cost the rest.
STANDING_OF_SLOTS = STANDING.format(
    waiting="COALESCE(sum(r.waiting), 0)",
    open=f"""r.quote - COALESCE((SELECT sum(d.charge) FROM generations d
                                           WHERE d.request_id = r.id AND d.{ACCEPTED}), 0)""",
)


def upgrade() -> None:
    for column, default in (("n", "1"), ("waiting", "0"), ("finished", "0")):
        op.add_column(
            "horde_requests",
            sa.Column(column, sa.SmallInteger(), server_default=sa.text(default), nullable=False),
        )
    op.create_check_constraint(
        op.f("ck_horde_requests_slots"), "horde_requests", "waiting >= 0 AND finished >= 0 AND waiting + finished <= n"
    )
    op.execute("UPDATE horde_requests SET waiting = 1 WHERE state IN ('preparing', 'queued')")
    op.execute("UPDATE horde_requests r SET finished = 1 FROM generations g WHERE g.request_id = r.id AND g." + ACCEPTED)

    op.execute(STANDING_OF_SLOTS)

    op.add_column("generations", sa.Column("slot", sa.SmallInteger(), server_default=sa.text("0"), nullable=False))
    op.drop_index("uq_generations_request_id_accepted", table_name="generations")
    op.create_index(
        "uq_generations_request_id_slot_accepted",
        "generations",
        ["request_id", "slot"],
        unique=True,
        postgresql_where=sa.text(ACCEPTED),
    )

    op.add_column("queue_entries", sa.Column("slot", sa.SmallInteger(), server_default=sa.text("0"), nullable=False))
    op.add_column("queue_entries", sa.Column("user_id", sa.BigInteger(), nullable=True))
    op.add_column("queue_entries", sa.Column("retried", sa.Boolean(), server_default=sa.text("false"), nullable=False))
    op.execute(
        "UPDATE queue_entries q SET user_id = r.user_id, retried = r.faults > 0 FROM horde_requests r"
        " WHERE r.id = q.request_id"
    )
    op.alter_column("queue_entries", "user_id", nullable=False)
    op.drop_constraint("pk_queue_entries", "queue_entries", type_="primary")
    op.create_primary_key("pk_queue_entries", "queue_entries", ["request_id", "slot"])
    op.drop_index("ix_queue_entries_class_id_sort_key", table_name="queue_entries")
    op.create_index(
        "ix_queue_entries_class_id_sort_key",
        "queue_entries",
        ["class_id", "sort_key"],
        unique=False,
        postgresql_include=["max_length"],
    )
    op.create_index("ix_queue_entries_user_id_sort_key", "queue_entries", ["user_id", "sort_key"], unique=False)

    op.add_column("workers", sa.Column("aborts", sa.Integer(), server_default=sa.text("0"), nullable=False))
    op.add_column("workers", sa.Column("aborts_since", sa.DateTime(timezone=True), nullable=True))
    op.add_column("workers", sa.Column("failed_at", sa.DateTime(timezone=True), nullable=True))

    op.create_table(
        "worker_speeds",
        sa.Column("worker_id", sa.Uuid(), nullable=False),
        sa.Column("model", sa.String(length=255), nullable=False),
        sa.Column("tokens_per_second", sa.Double(), nullable=False),
        sa.Column("samples", sa.Integer(), nullable=False),
        sa.Column("measured_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.ForeignKeyConstraint(["worker_id"], ["workers.id"], name=op.f("fk_worker_speeds_worker_id_workers")),
        sa.PrimaryKeyConstraint("worker_id", "model", name=op.f("pk_worker_speeds")),
    )
    op.create_table(
        "heartbeats",
        sa.Column("name", sa.String(length=32), nullable=False),
        sa.Column("at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("name", name=op.f("pk_heartbeats")),
    )
    op.create_table(
        "outages",
        sa.Column("id", sa.BigInteger(), autoincrement=True, nullable=False),
        sa.Column("began_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("ended_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_outages")),
    )
    op.create_index(op.f("ix_outages_ended_at"), "outages", ["ended_at"], unique=False)


def downgrade() -> None:
    op.drop_index(op.f("ix_outages_ended_at"), table_name="outages")
    op.drop_table("outages")
    op.drop_table("heartbeats")
    op.drop_table("worker_speeds")
    for column in ("failed_at", "aborts_since", "aborts"):
        op.drop_column("workers", column)
    op.drop_index("ix_queue_entries_user_id_sort_key", table_name="queue_entries")
    op.drop_index("ix_queue_entries_class_id_sort_key", table_name="queue_entries")
    op.create_index("ix_queue_entries_class_id_sort_key", "queue_entries", ["class_id", "sort_key"], unique=False)
    op.drop_constraint("pk_queue_entries", "queue_entries", type_="primary")
    op.execute("DELETE FROM queue_entries WHERE slot > 0")
    op.create_primary_key("pk_queue_entries", "queue_entries", ["request_id"])
    for column in ("retried", "user_id", "slot"):
        op.drop_column("queue_entries", column)
    op.drop_index(
        "uq_generations_request_id_slot_accepted", table_name="generations", postgresql_where=sa.text(ACCEPTED)
    )
    op.create_index(
        "uq_generations_request_id_accepted",
        "generations",
        ["request_id"],
        unique=True,
        postgresql_where=sa.text(ACCEPTED),
    )
    op.drop_column("generations", "slot")
    op.execute(STANDING_OF_REQUESTS)
    op.drop_constraint(op.f("ck_horde_requests_slots"), "horde_requests", type_="check")
    for column in ("finished", "waiting", "n"):
        op.drop_column("horde_requests", column)
