"""What requests have in the object store."""

from alembic import op
import sqlalchemy as sa
from sqlalchemy.dialects import postgresql

revision = "0009_images"
down_revision = "0008_progress"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "request_media",
        sa.Column("request_id", sa.Uuid(), nullable=False),
        sa.Column("folder", sa.String(length=64), nullable=False),
        sa.Column("sources", postgresql.JSONB(astext_type=sa.Text()), nullable=False),
        sa.Column("attempts", sa.Integer(), server_default=sa.text("0"), nullable=False),
        sa.Column("failures", sa.Integer(), server_default=sa.text("0"), nullable=False),
        sa.Column("next_dispatch_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("offloaded_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("created_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.ForeignKeyConstraint(
            ["request_id"], ["horde_requests.id"], name=op.f("fk_request_media_request_id_horde_requests")
        ),
        sa.PrimaryKeyConstraint("request_id", name=op.f("pk_request_media")),
        sa.UniqueConstraint("folder", name=op.f("uq_request_media_folder")),
    )
    op.create_index(
        "ix_request_media_next_dispatch_at",
        "request_media",
        ["next_dispatch_at"],
        postgresql_where=sa.text("next_dispatch_at IS NOT NULL"),
    )


def downgrade() -> None:
    op.drop_table("request_media")
