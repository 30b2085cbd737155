"""Bans, reports, passkeys that are on their way out, and accounts whose data was erased."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0010_operator"
down_revision = "0009_images"
branch_labels = None
depends_on = None

KINDS = "kind IN ('request', 'requester', 'worker')"
IS_OPEN = sa.text("closed_at IS NULL")


def upgrade() -> None:
    op.create_table(
        "bans",
        sa.Column("id", sa.BigInteger(), autoincrement=True, nullable=False),
        sa.Column("user_id", sa.BigInteger(), nullable=True),
        sa.Column("network", postgresql.CIDR(), nullable=True),
        sa.Column("reason", sa.String(length=1000), nullable=True),
        sa.Column("created_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.Column("ends_at", sa.DateTime(timezone=True), nullable=True),
        sa.CheckConstraint("(user_id IS NULL) <> (network IS NULL)", name=op.f("ck_bans_one_target")),
        sa.ForeignKeyConstraint(["user_id"], ["users.id"], name=op.f("fk_bans_user_id_users")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_bans")),
        sa.UniqueConstraint("user_id", name=op.f("uq_bans_user_id")),
        sa.UniqueConstraint("network", name=op.f("uq_bans_network")),
    )
    op.create_table(
        "reports",
        sa.Column("id", sa.BigInteger(), autoincrement=True, nullable=False),
        sa.Column("reporter_id", sa.BigInteger(), nullable=False),
        sa.Column("kind", sa.String(length=16), nullable=False),
        sa.Column("target", sa.String(length=64), nullable=False),
        sa.Column("user_id", sa.BigInteger(), nullable=False),
        sa.Column("worker_id", sa.Uuid(), nullable=True),
        sa.Column("request_id", sa.Uuid(), nullable=True),
        sa.Column("reason", sa.String(length=1000), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.Column("closed_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("note", sa.String(length=1000), nullable=True),
        sa.CheckConstraint(KINDS, name=op.f("ck_reports_kind")),
        sa.ForeignKeyConstraint(["reporter_id"], ["users.id"], name=op.f("fk_reports_reporter_id_users")),
        sa.ForeignKeyConstraint(["user_id"], ["users.id"], name=op.f("fk_reports_user_id_users")),
        sa.ForeignKeyConstraint(["worker_id"], ["workers.id"], name=op.f("fk_reports_worker_id_workers")),
        sa.ForeignKeyConstraint(["request_id"], ["horde_requests.id"], name=op.f("fk_reports_request_id_horde_requests")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_reports")),
    )
    op.create_index(
        "uq_reports_reporter_id_kind_target_open",
        "reports",
        ["reporter_id", "kind", "target"],
        unique=True,
        postgresql_where=IS_OPEN,
    )
    op.create_index("ix_reports_id_open", "reports", ["id"], postgresql_where=IS_OPEN)
    op.create_index("ix_reports_user_id", "reports", ["user_id"])
    op.add_column("users", sa.Column("previous_passkey_sha256", sa.String(length=64), nullable=True))
    op.add_column("users", sa.Column("previous_passkey_until", sa.DateTime(timezone=True), nullable=True))
    op.add_column("users", sa.Column("erased_at", sa.DateTime(timezone=True), nullable=True))
    op.create_index(
        "ix_users_previous_passkey_sha256",
        "users",
        ["previous_passkey_sha256"],
        postgresql_where=sa.text("previous_passkey_sha256 IS NOT NULL"),
    )


def downgrade() -> None:
    op.drop_index("ix_users_previous_passkey_sha256", table_name="users")
    for column in ("erased_at", "previous_passkey_until", "previous_passkey_sha256"):
        op.drop_column("users", column)
    op.drop_table("reports")
    op.drop_table("bans")
