"""Lines that an operator shows on the status page."""

from alembic import op
import sqlalchemy as sa

revision = "0011_incidents"
down_revision = "0010_operator"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "incidents",
        sa.Column("id", sa.BigInteger(), autoincrement=True, nullable=False),
        sa.Column("message", sa.String(length=500), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.Column("ended_at", sa.DateTime(timezone=True), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_incidents")),
    )


def downgrade() -> None:
    op.drop_table("incidents")
