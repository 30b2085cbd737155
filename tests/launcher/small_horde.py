"""The launcher on a Procfile of the test's own: `small_horde.py PROCFILE [--detach]`.

It goes through everything but the accounts, which need the horde's own tables.
"""

import sys
from pathlib import Path

from config.settings import load_launcher_settings
from launcher.errors import LauncherError
from launcher.options import UpOptions
from launcher.startup import StopRequested, up

try:
    up(
        load_launcher_settings(),
        UpOptions(detach="--detach" in sys.argv, with_worker=False, procfile=Path(sys.argv[1])),
        create_accounts=lambda _environment, _secrets: None,
    )
except LauncherError as error:
    sys.exit(f"{error}")
except StopRequested:
    sys.exit(0)
