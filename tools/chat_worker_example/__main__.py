"""`python -m chat_worker_example`: runs the worker in the foreground."""

import asyncio
import os
import sys

from .config import ConfigError, load_config
from .worker import EXIT_CONFIGURATION, run_worker


def main() -> int:
    """Runs the worker and returns its exit code: 0 after a stop by signal, 2 when the configuration has to change."""
    try:
        config = load_config(sys.argv[1:], os.environ)
    except ConfigError as error:
        sys.stderr.write(f"{error}\n")
        return EXIT_CONFIGURATION
    return asyncio.run(run_worker(config))


if __name__ == "__main__":
    sys.exit(main())
