"""Suspicions, where workers call from, and what moderators note about accounts."""

import sqlalchemy as sa
from alembic import op

revision = "0007_countermeasures"
down_revision = "0006_statistics"
branch_labels = None
depends_on = None

REASONS = "reason IN ('corrupt_prompt', 'too_many_aborts', 'unreasonably_fast')"


def upgrade() -> None:
    op.create_table(
        "suspicions",
        sa.Column("id", sa.BigInteger(), autoincrement=True, nullable=False),
        sa.Column("user_id", sa.BigInteger(), nullable=False),
        sa.Column("worker_id", sa.Uuid(), nullable=True),
        sa.Column("reason", sa.String(length=32), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.CheckConstraint(REASONS, name=op.f("ck_suspicions_reason")),
        sa.ForeignKeyConstraint(["user_id"], ["users.id"], name=op.f("fk_suspicions_user_id_users")),
        sa.ForeignKeyConstraint(["worker_id"], ["workers.id"], name=op.f("fk_suspicions_worker_id_workers")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_suspicions")),
    )
    op.create_index("ix_suspicions_user_id", "suspicions", ["user_id"])
    op.create_index("ix_suspicions_worker_id", "suspicions", ["worker_id"])

    op.add_column("users", sa.Column("worker_invited", sa.Integer(), server_default=sa.text("0"), nullable=False))
    op.add_column("users", sa.Column("public_workers", sa.Boolean(), server_default=sa.text("false"), nullable=False))
    op.add_column("users", sa.Column("contact", sa.String(length=500), nullable=True))
    op.add_column("users", sa.Column("admin_comment", sa.Text(), nullable=True))

    op.add_column("workers", sa.Column("address", sa.String(length=64), nullable=True))
    op.create_index("ix_workers_address", "workers", ["address"])


def downgrade() -> None:
    op.drop_index("ix_workers_address", table_name="workers")
    op.drop_column("workers", "address")
    for column in ("admin_comment", "contact", "public_workers", "worker_invited"):
        op.drop_column("users", column)
    op.drop_table("suspicions")
