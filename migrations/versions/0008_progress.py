"""Progress: which requests may be streamed, and which generations were given out so."""

import sqlalchemy as sa
from alembic import op

revision = "0008_progress"
down_revision = "0004_routing"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("horde_requests", sa.Column("streams", sa.Boolean(), server_default=sa.text("false"), nullable=False))
    op.add_column("generations", sa.Column("streamed", sa.Boolean(), server_default=sa.text("false"), nullable=False))


def downgrade() -> None:
    op.drop_column("generations", "streamed")
    op.drop_column("horde_requests", "streams")
