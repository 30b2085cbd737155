"""Flower's settings: what it shows operators, behind basic auth (operations O4).

Port and address come from Flower's own variables, FLOWER_PORT and FLOWER_ADDRESS.
"""

import secrets

from config.settings import get_settings

_settings = get_settings()
_auth = _settings.flower_basic_auth

# Without FLOWER_BASIC_AUTH nobody gets in: Flower shows every task to whoever does.
basic_auth = [_auth.get_secret_value()] if _auth is not None else [f"flower:{secrets.token_urlsafe(32)}"]
# The default keeps 100 000 tasks in memory.
max_tasks = 5_000
purge_offline_workers = 300
persistent = False
