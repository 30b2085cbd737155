"""`horde serve`: both faces for a host that routes to one process."""

import asyncio
import sys

import click

from cli.context import settings_or_exit
from launcher.both_faces import serve_both


@click.command()
def serve() -> None:
    """Serve the front and the native API from one process group.

    The front listens on PORT, or HORDE_FRONT_PORT; the native API on this
    machine alone, at HORDE_NATIVE_PORT. NATIVE_URLS is set for you. When one
    of the two ends, the command ends, so that the host starts both anew.
    """
    sys.exit(asyncio.run(serve_both(settings_or_exit())))
