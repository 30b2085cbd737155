"""Roles, metered and shared keys, reservations, escrow, transfers, uptime; the lock and the release of a hold."""

from alembic import op
import sqlalchemy as sa

revision = "0003_kudos"
down_revision = "0002_contract"
branch_labels = None
depends_on = None

ROLES = ("moderator", "flagged", "education", "customizer", "vpn", "special", "deleted")


def upgrade() -> None:
    _accounts()
    _requests()
    _ledger()
    _indexes()
    op.execute(STANDING)
    op.execute(RELEASE)
    op.execute("INSERT INTO users (id, username, kind) VALUES (2, 'Floor', 'system')")


def _accounts() -> None:
    for role in ROLES:
        op.add_column("users", sa.Column(role, sa.Boolean(), server_default=sa.text("false"), nullable=False))
    op.add_column("users", sa.Column("concurrency", sa.Integer(), nullable=True))
    op.add_column("api_keys", sa.Column("kudos_limit", sa.BigInteger(), nullable=True))
    op.add_column("api_keys", sa.Column("shared_id", sa.Uuid(), nullable=True))
    op.add_column("api_keys", sa.Column("max_text_tokens", sa.Integer(), nullable=True))
    op.create_unique_constraint(op.f("uq_api_keys_shared_id"), "api_keys", ["shared_id"])
    op.create_check_constraint(
        op.f("ck_api_keys_shared_has_limits"), "api_keys", "shared_id IS NOT NULL OR max_text_tokens IS NULL"
    )
    op.add_column("workers", sa.Column("uptime_from", sa.DateTime(timezone=True), nullable=True))


def _requests() -> None:
    op.add_column("horde_requests", sa.Column("key_id", sa.BigInteger(), nullable=True))
    op.add_column("horde_requests", sa.Column("hold", sa.BigInteger(), server_default=sa.text("0"), nullable=False))
    op.create_foreign_key(op.f("fk_horde_requests_key_id_api_keys"), "horde_requests", "api_keys", ["key_id"], ["id"])
    op.create_check_constraint(op.f("ck_horde_requests_hold"), "horde_requests", "hold >= 0")


def _ledger() -> None:
    op.add_column(
        "ledger_entries",
        sa.Column("pocket", sa.String(length=16), server_default=sa.text("'spendable'"), nullable=False),
    )
    op.add_column("ledger_entries", sa.Column("key_id", sa.BigInteger(), nullable=True))
    op.add_column("ledger_entries", sa.Column("tokens", sa.Integer(), server_default=sa.text("0"), nullable=False))
    op.create_check_constraint(
        op.f("ck_ledger_entries_pocket"), "ledger_entries", "pocket IN ('escrow', 'held', 'spendable')"
    )
    op.create_foreign_key(op.f("fk_ledger_entries_key_id_api_keys"), "ledger_entries", "api_keys", ["key_id"], ["id"])
    op.add_column("balances", sa.Column("escrow", sa.BigInteger(), server_default=sa.text("0"), nullable=False))
    op.add_column("balances", sa.Column("held", sa.BigInteger(), server_default=sa.text("0"), nullable=False))
    op.create_table(
        "key_spending",
        sa.Column("key_id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("amount", sa.BigInteger(), server_default=sa.text("0"), nullable=False),
        sa.ForeignKeyConstraint(["key_id"], ["api_keys.id"], name=op.f("fk_key_spending_key_id_api_keys")),
        sa.PrimaryKeyConstraint("key_id", name=op.f("pk_key_spending")),
    )
    op.create_table(
        "kudos_totals",
        sa.Column("user_id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("kind", sa.String(length=32), nullable=False),
        sa.Column("amount", sa.BigInteger(), server_default=sa.text("0"), nullable=False),
        sa.Column("entries", sa.BigInteger(), server_default=sa.text("0"), nullable=False),
        sa.Column("tokens", sa.BigInteger(), server_default=sa.text("0"), nullable=False),
        sa.ForeignKeyConstraint(["user_id"], ["users.id"], name=op.f("fk_kudos_totals_user_id_users")),
        sa.PrimaryKeyConstraint("user_id", "kind", name=op.f("pk_kudos_totals")),
    )
    op.create_table(
        "kudos_transfers",
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("source_id", sa.BigInteger(), nullable=False),
        sa.Column("target_id", sa.BigInteger(), nullable=False),
        sa.Column("target", sa.String(length=36), nullable=False),
        sa.Column("amount", sa.BigInteger(), nullable=False),
        sa.Column("idempotency_key", sa.String(length=255), nullable=True),
        sa.Column("created_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.CheckConstraint("amount > 0", name=op.f("ck_kudos_transfers_amount")),
        sa.CheckConstraint("source_id <> target_id", name=op.f("ck_kudos_transfers_two_accounts")),
        sa.ForeignKeyConstraint(["source_id"], ["users.id"], name=op.f("fk_kudos_transfers_source_id_users")),
        sa.ForeignKeyConstraint(["target_id"], ["users.id"], name=op.f("fk_kudos_transfers_target_id_users")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_kudos_transfers")),
        sa.UniqueConstraint(
            "source_id", "idempotency_key", name=op.f("uq_kudos_transfers_source_id_idempotency_key")
        ),
    )
    # What was booked before these totals existed belongs in them too.
    op.execute(
        "INSERT INTO kudos_totals (user_id, kind, amount, entries)"
        " SELECT user_id, kind, sum(amount), count(*) FROM ledger_entries WHERE folded GROUP BY user_id, kind"
    )


def _indexes() -> None:
    op.create_index(
        "ix_horde_requests_user_id_class_id_waiting",
        "horde_requests",
        ["user_id", "class_id"],
        unique=False,
        postgresql_where=sa.text("state IN ('preparing', 'queued')"),
    )
    op.create_index(
        "ix_horde_requests_key_id_open",
        "horde_requests",
        ["key_id"],
        unique=False,
        postgresql_where=sa.text("key_id IS NOT NULL AND state IN ('preparing', 'processing', 'queued')"),
    )
    op.create_index(
        "ix_ledger_entries_key_id_unfolded",
        "ledger_entries",
        ["key_id"],
        unique=False,
        postgresql_where=sa.text("key_id IS NOT NULL AND NOT folded"),
    )
    op.create_index(
        "ix_generations_worker_id_ended_at_accepted",
        "generations",
        ["worker_id", "ended_at"],
        unique=False,
        postgresql_where=sa.text("state IN ('verified', 'settled')"),
    )
    op.create_index(
        "ix_kudos_transfers_pair", "kudos_transfers", ["source_id", "target_id", "created_at"], unique=False
    )


# Volatile, so that its query sees what committed before the lock came: a caller's own
# snapshot would be older. The lock goes with the caller's transaction.
STANDING = """
CREATE FUNCTION locked_standing(account bigint, metered_key bigint)
RETURNS TABLE (waiting bigint, spendable bigint, committed bigint)
LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    PERFORM pg_advisory_xact_lock(hashtextextended('account', account));
    RETURN QUERY SELECT
        (SELECT count(*) FROM horde_requests r
         WHERE r.user_id = account AND r.state IN ('preparing', 'queued')),
        (COALESCE((SELECT b.amount FROM balances b WHERE b.user_id = account), 0)
         + COALESCE((SELECT sum(e.amount) FROM ledger_entries e
                     WHERE e.user_id = account AND NOT e.folded AND e.pocket = 'spendable'), 0))::bigint,
        (CASE WHEN metered_key IS NULL THEN 0 ELSE
            COALESCE((SELECT s.amount FROM key_spending s WHERE s.key_id = metered_key), 0)
            - COALESCE((SELECT sum(e.amount) FROM ledger_entries e
                        WHERE e.key_id = metered_key AND NOT e.folded), 0)
            + COALESCE((SELECT sum(r.quote) FROM horde_requests r
                        WHERE r.key_id = metered_key AND r.state IN ('preparing', 'queued', 'processing')), 0)
            + COALESCE((SELECT sum(g.charge) FROM generations g JOIN horde_requests r ON r.id = g.request_id
                        WHERE g.state = 'verified' AND r.key_id = metered_key), 0)
         END)::bigint;
END
$$
"""

# Whatever statement ends a request, here or in a later version, gives its hold back with it.
RELEASE = """
CREATE FUNCTION release_hold() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO ledger_entries (business_key, kind, user_id, pocket, amount)
    VALUES ('upfront:' || NEW.id, 'release', NEW.user_id, 'spendable', NEW.hold),
           ('upfront:' || NEW.id, 'released', NEW.user_id, 'held', -NEW.hold);
    RETURN NULL;
END
$$;
CREATE TRIGGER release_hold AFTER UPDATE OF state ON horde_requests FOR EACH ROW
WHEN (NEW.hold > 0 AND OLD.ended_at IS NULL AND NEW.ended_at IS NOT NULL)
EXECUTE FUNCTION release_hold()
"""


def downgrade() -> None:
    op.execute("DROP TRIGGER release_hold ON horde_requests")
    op.execute("DROP FUNCTION release_hold()")
    op.execute("DROP FUNCTION locked_standing(bigint, bigint)")
    op.drop_index("ix_generations_worker_id_ended_at_accepted", table_name="generations")
    op.drop_index("ix_horde_requests_user_id_class_id_waiting", table_name="horde_requests")
    op.drop_table("kudos_transfers")
    op.drop_table("kudos_totals")
    op.drop_table("key_spending")
    for column in ("escrow", "held"):
        op.drop_column("balances", column)
    for column in ("pocket", "key_id", "tokens"):
        op.drop_column("ledger_entries", column)
    for column in ("key_id", "hold"):
        op.drop_column("horde_requests", column)
    op.drop_column("workers", "uptime_from")
    for column in ("kudos_limit", "shared_id", "max_text_tokens"):
        op.drop_column("api_keys", column)
    for column in (*ROLES, "concurrency"):
        op.drop_column("users", column)
