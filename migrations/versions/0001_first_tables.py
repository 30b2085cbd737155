"""Accounts, workers, requests, generations and the ledger, with the accounts that every horde has."""

from alembic import op
import sqlalchemy as sa
from sqlalchemy.dialects import postgresql

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "requirement_classes",
        sa.Column("id", sa.Integer(), sa.Identity(always=False), nullable=False),
        sa.Column("digest", sa.String(length=64), nullable=False),
        sa.Column("requirements", postgresql.JSONB(astext_type=sa.Text()), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_requirement_classes")),
        sa.UniqueConstraint("digest", name=op.f("uq_requirement_classes_digest")),
    )
    op.create_table(
        "users",
        sa.Column("id", sa.BigInteger(), autoincrement=True, nullable=False),
        sa.Column("username", sa.String(length=100), nullable=False),
        sa.Column("kind", sa.String(length=16), nullable=False),
        sa.Column("trusted", sa.Boolean(), server_default=sa.text("false"), nullable=False),
        sa.Column("passkey_sha256", sa.String(length=64), nullable=True),
        sa.Column("created_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.CheckConstraint("kind IN ('admin', 'anonymous', 'service', 'system', 'user')", name=op.f("ck_users_kind")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_users")),
        sa.UniqueConstraint("passkey_sha256", name=op.f("uq_users_passkey_sha256")),
    )
    op.create_index(
        "uq_users_username_system", "users", ["username"], unique=True, postgresql_where=sa.text("kind = 'system'")
    )
    op.create_table(
        "api_keys",
        sa.Column("id", sa.BigInteger(), autoincrement=True, nullable=False),
        sa.Column("user_id", sa.BigInteger(), nullable=False),
        sa.Column("key_sha256", sa.String(length=64), nullable=False),
        sa.Column("name", sa.String(length=255), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.Column("expires_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("revoked_at", sa.DateTime(timezone=True), nullable=True),
        sa.ForeignKeyConstraint(["user_id"], ["users.id"], name=op.f("fk_api_keys_user_id_users")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_api_keys")),
        sa.UniqueConstraint("key_sha256", name=op.f("uq_api_keys_key_sha256")),
    )
    op.create_index(op.f("ix_api_keys_user_id"), "api_keys", ["user_id"], unique=False)
    op.create_table(
        "balances",
        sa.Column("user_id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("amount", sa.BigInteger(), server_default=sa.text("0"), nullable=False),
        sa.ForeignKeyConstraint(["user_id"], ["users.id"], name=op.f("fk_balances_user_id_users")),
        sa.PrimaryKeyConstraint("user_id", name=op.f("pk_balances")),
    )
    op.create_table(
        "horde_requests",
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("user_id", sa.BigInteger(), nullable=False),
        sa.Column("is_chat", sa.Boolean(), nullable=False),
        sa.Column("state", sa.String(length=16), nullable=False),
        sa.Column("class_id", sa.Integer(), nullable=False),
        sa.Column("requirements", postgresql.JSONB(astext_type=sa.Text()), nullable=False),
        sa.Column("max_length", sa.Integer(), nullable=False),
        sa.Column("max_context_length", sa.Integer(), nullable=False),
        sa.Column("context_tokens", sa.Integer(), nullable=False),
        sa.Column("job_ttl_seconds", sa.Integer(), nullable=False),
        sa.Column("conformance", sa.String(length=16), nullable=False),
        sa.Column("quote", sa.BigInteger(), nullable=False),
        sa.Column("faults", sa.Integer(), server_default=sa.text("0"), nullable=False),
        sa.Column("fault", postgresql.JSONB(none_as_null=True, astext_type=sa.Text()), nullable=True),
        sa.Column("sort_key", sa.Double(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.Column("expires_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("ended_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("bodies_erased_at", sa.DateTime(timezone=True), nullable=True),
        sa.CheckConstraint(
            "state IN ('cancelled', 'done', 'expired', 'faulted', 'preparing', 'processing', 'queued')",
            name=op.f("ck_horde_requests_state"),
        ),
        sa.ForeignKeyConstraint(
            ["class_id"], ["requirement_classes.id"], name=op.f("fk_horde_requests_class_id_requirement_classes")
        ),
        sa.ForeignKeyConstraint(["user_id"], ["users.id"], name=op.f("fk_horde_requests_user_id_users")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_horde_requests")),
    )
    op.create_index(
        "ix_horde_requests_ended_at_bodies",
        "horde_requests",
        ["ended_at"],
        unique=False,
        postgresql_where=sa.text("ended_at IS NOT NULL AND bodies_erased_at IS NULL"),
    )
    op.create_index(
        "ix_horde_requests_expires_at_open",
        "horde_requests",
        ["expires_at"],
        unique=False,
        postgresql_where=sa.text("state IN ('preparing', 'processing', 'queued')"),
    )
    op.create_index(op.f("ix_horde_requests_user_id"), "horde_requests", ["user_id"], unique=False)
    op.create_table(
        "ledger_entries",
        sa.Column("id", sa.BigInteger(), autoincrement=True, nullable=False),
        sa.Column("business_key", sa.String(length=200), nullable=False),
        sa.Column("kind", sa.String(length=32), nullable=False),
        sa.Column("user_id", sa.BigInteger(), nullable=False),
        sa.Column("amount", sa.BigInteger(), nullable=False),
        sa.Column("folded", sa.Boolean(), server_default=sa.text("false"), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.ForeignKeyConstraint(["user_id"], ["users.id"], name=op.f("fk_ledger_entries_user_id_users")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_ledger_entries")),
        sa.UniqueConstraint(
            "business_key", "kind", "user_id", name=op.f("uq_ledger_entries_business_key_kind_user_id")
        ),
    )
    op.create_index(
        "ix_ledger_entries_id_unfolded", "ledger_entries", ["id"], unique=False, postgresql_where=sa.text("NOT folded")
    )
    op.create_index(
        "ix_ledger_entries_user_id_unfolded",
        "ledger_entries",
        ["user_id"],
        unique=False,
        postgresql_where=sa.text("NOT folded"),
    )
    op.create_table(
        "workers",
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("user_id", sa.BigInteger(), nullable=False),
        sa.Column("name", sa.String(length=100), nullable=False),
        sa.Column("declaration", postgresql.JSONB(astext_type=sa.Text()), nullable=False),
        sa.Column("maintenance", sa.Boolean(), server_default=sa.text("false"), nullable=False),
        sa.Column("maintenance_message", sa.Text(), nullable=True),
        sa.Column("created_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.Column("last_seen_at", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(["user_id"], ["users.id"], name=op.f("fk_workers_user_id_users")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_workers")),
        sa.UniqueConstraint("name", name=op.f("uq_workers_name")),
    )
    op.create_index("ix_workers_last_seen_at", "workers", ["last_seen_at"], unique=False)
    op.create_index(op.f("ix_workers_user_id"), "workers", ["user_id"], unique=False)
    op.create_table(
        "generations",
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("request_id", sa.Uuid(), nullable=False),
        sa.Column("worker_id", sa.Uuid(), nullable=False),
        sa.Column("state", sa.String(length=16), nullable=False),
        sa.Column("model", sa.String(length=255), nullable=False),
        sa.Column("pop_key", sa.String(length=255), nullable=True),
        sa.Column("popped_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.Column("deadline_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("submitted_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("ended_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("tokens", sa.Integer(), nullable=True),
        sa.Column("charge", sa.BigInteger(), nullable=True),
        sa.Column("reward", sa.BigInteger(), nullable=True),
        sa.Column("charge_basis", sa.String(length=32), nullable=True),
        sa.Column("fault", sa.String(length=64), nullable=True),
        sa.Column("refusal", sa.String(length=1000), nullable=True),
        sa.Column("attempts", sa.Integer(), server_default=sa.text("0"), nullable=False),
        sa.Column("next_dispatch_at", sa.DateTime(timezone=True), nullable=True),
        sa.CheckConstraint(
            "state IN ('cancelled', 'faulted', 'leased', 'refused', 'settled', 'submitted', 'timed_out', 'verified')",
            name=op.f("ck_generations_state"),
        ),
        sa.CheckConstraint("(charge IS NULL) = (reward IS NULL)", name=op.f("ck_generations_amounts_paired")),
        sa.ForeignKeyConstraint(
            ["request_id"], ["horde_requests.id"], name=op.f("fk_generations_request_id_horde_requests")
        ),
        sa.ForeignKeyConstraint(["worker_id"], ["workers.id"], name=op.f("fk_generations_worker_id_workers")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_generations")),
    )
    op.create_index(
        "ix_generations_deadline_at_leased",
        "generations",
        ["deadline_at"],
        unique=False,
        postgresql_where=sa.text("state = 'leased'"),
    )
    op.create_index(
        "ix_generations_next_dispatch_at",
        "generations",
        ["state", "next_dispatch_at"],
        unique=False,
        postgresql_where=sa.text("state IN ('submitted', 'verified')"),
    )
    op.create_index(op.f("ix_generations_request_id"), "generations", ["request_id"], unique=False)
    op.create_index(
        "uq_generations_request_id_accepted",
        "generations",
        ["request_id"],
        unique=True,
        postgresql_where=sa.text("state IN ('verified', 'settled')"),
    )
    op.create_index(
        "uq_generations_worker_id_pop_key",
        "generations",
        ["worker_id", "pop_key"],
        unique=True,
        postgresql_where=sa.text("pop_key IS NOT NULL"),
    )
    op.create_table(
        "operation_keys",
        sa.Column("user_id", sa.BigInteger(), nullable=False),
        sa.Column("scope", sa.String(length=64), nullable=False),
        sa.Column("key", sa.String(length=255), nullable=False),
        sa.Column("fingerprint", sa.String(length=64), nullable=False),
        sa.Column("request_id", sa.Uuid(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.ForeignKeyConstraint(
            ["request_id"], ["horde_requests.id"], name=op.f("fk_operation_keys_request_id_horde_requests")
        ),
        sa.ForeignKeyConstraint(["user_id"], ["users.id"], name=op.f("fk_operation_keys_user_id_users")),
        sa.PrimaryKeyConstraint("user_id", "scope", "key", name=op.f("pk_operation_keys")),
    )
    op.create_table(
        "queue_entries",
        sa.Column("request_id", sa.Uuid(), nullable=False),
        sa.Column("class_id", sa.Integer(), nullable=False),
        sa.Column("sort_key", sa.Double(), nullable=False),
        sa.Column("max_length", sa.Integer(), nullable=False),
        sa.Column("max_context_length", sa.Integer(), nullable=False),
        sa.Column("images", sa.Integer(), nullable=False),
        sa.Column("tools", sa.Integer(), nullable=False),
        sa.Column("tools_temperature", sa.Double(), nullable=True),
        sa.ForeignKeyConstraint(
            ["request_id"], ["horde_requests.id"], name=op.f("fk_queue_entries_request_id_horde_requests")
        ),
        sa.PrimaryKeyConstraint("request_id", name=op.f("pk_queue_entries")),
    )
    op.create_index("ix_queue_entries_class_id_sort_key", "queue_entries", ["class_id", "sort_key"], unique=False)
    op.create_table(
        "request_bodies",
        sa.Column("request_id", sa.Uuid(), nullable=False),
        sa.Column("contract", postgresql.JSONB(astext_type=sa.Text()), nullable=False),
        sa.Column("prompt", sa.Text(), nullable=False),
        sa.Column("submitted_prompt", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(
            ["request_id"], ["horde_requests.id"], name=op.f("fk_request_bodies_request_id_horde_requests")
        ),
        sa.PrimaryKeyConstraint("request_id", name=op.f("pk_request_bodies")),
    )
    op.create_table(
        "replies",
        sa.Column("generation_id", sa.Uuid(), nullable=False),
        sa.Column("body", postgresql.JSONB(astext_type=sa.Text()), nullable=False),
        sa.ForeignKeyConstraint(
            ["generation_id"], ["generations.id"], name=op.f("fk_replies_generation_id_generations")
        ),
        sa.PrimaryKeyConstraint("generation_id", name=op.f("pk_replies")),
    )

    # The queue's dead entries are what slows a claim, so they go early (details D11).
    op.execute("ALTER TABLE queue_entries SET (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 500)")
    op.execute("INSERT INTO users (id, username, kind) VALUES (0, 'Anonymous', 'anonymous'), (1, 'Horde', 'system')")
    op.execute("SELECT setval(pg_get_serial_sequence('users', 'id'), 100, false)")
    op.execute(
        "INSERT INTO api_keys (user_id, key_sha256, name) VALUES (0, encode(sha256('0000000000'), 'hex'), 'anonymous')"
    )


def downgrade() -> None:
    op.drop_table("replies")
    op.drop_table("request_bodies")
    op.drop_index("ix_queue_entries_class_id_sort_key", table_name="queue_entries")
    op.drop_table("queue_entries")
    op.drop_table("operation_keys")
    op.drop_index(
        "uq_generations_worker_id_pop_key", table_name="generations", postgresql_where=sa.text("pop_key IS NOT NULL")
    )
    op.drop_index(
        "uq_generations_request_id_accepted",
        table_name="generations",
        postgresql_where=sa.text("state IN ('verified', 'settled')"),
    )
    op.drop_index(op.f("ix_generations_request_id"), table_name="generations")
    op.drop_index(
        "ix_generations_next_dispatch_at",
        table_name="generations",
        postgresql_where=sa.text("state IN ('submitted', 'verified')"),
    )
    op.drop_index(
        "ix_generations_deadline_at_leased", table_name="generations", postgresql_where=sa.text("state = 'leased'")
    )
    op.drop_table("generations")
    op.drop_index(op.f("ix_workers_user_id"), table_name="workers")
    op.drop_index("ix_workers_last_seen_at", table_name="workers")
    op.drop_table("workers")
    op.drop_index(
        "ix_ledger_entries_user_id_unfolded", table_name="ledger_entries", postgresql_where=sa.text("NOT folded")
    )
    op.drop_index("ix_ledger_entries_id_unfolded", table_name="ledger_entries", postgresql_where=sa.text("NOT folded"))
    op.drop_table("ledger_entries")
    op.drop_index(op.f("ix_horde_requests_user_id"), table_name="horde_requests")
    op.drop_index(
        "ix_horde_requests_expires_at_open",
        table_name="horde_requests",
        postgresql_where=sa.text("state IN ('preparing', 'processing', 'queued')"),
    )
    op.drop_index(
        "ix_horde_requests_ended_at_bodies",
        table_name="horde_requests",
        postgresql_where=sa.text("ended_at IS NOT NULL AND bodies_erased_at IS NULL"),
    )
    op.drop_table("horde_requests")
    op.drop_table("balances")
    op.drop_index(op.f("ix_api_keys_user_id"), table_name="api_keys")
    op.drop_table("api_keys")
    op.drop_index("uq_users_username_system", table_name="users", postgresql_where=sa.text("kind = 'system'"))
    op.drop_table("users")
    op.drop_table("requirement_classes")
