"""Moderation filters, and the names of models that were ever declared."""

from alembic import op
import sqlalchemy as sa

revision = "0002_contract"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "filters",
        sa.Column("id", sa.Integer(), sa.Identity(always=False), nullable=False),
        sa.Column("kind", sa.String(length=16), nullable=False),
        sa.Column("pattern", sa.Text(), nullable=False),
        sa.Column("replacement", sa.Text(), nullable=True),
        sa.Column("description", sa.String(length=255), nullable=True),
        sa.Column("created_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.CheckConstraint("kind IN ('block', 'replace')", name=op.f("ck_filters_kind")),
        sa.CheckConstraint("(kind = 'replace') = (replacement IS NOT NULL)", name=op.f("ck_filters_replacement")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_filters")),
    )
    op.create_table(
        "known_models",
        sa.Column("name", sa.String(length=255), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.PrimaryKeyConstraint("name", name=op.f("pk_known_models")),
    )
    op.execute(
        """
        INSERT INTO known_models (name)
        SELECT DISTINCT declaration ->> 'model_id' FROM workers
        WHERE length(declaration ->> 'model_id') <= 255
        """
    )


def downgrade() -> None:
    op.drop_table("known_models")
    op.drop_table("filters")
