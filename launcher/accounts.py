"""The accounts that a horde on one machine starts with."""

from collections.abc import Mapping

from app.services.local_accounts import LocalKeys, ensure_local_accounts
from config.settings import Settings
from launcher.local_secrets import LocalSecrets


def create_accounts(environment: Mapping[str, str], secrets: LocalSecrets) -> None:
    """Create the admin, the demo requester, the worker's owner and the front's service account, once."""
    named = {name.lower(): value for name, value in environment.items()}
    settings = Settings.model_validate({name: named[name] for name in Settings.model_fields if name in named})
    keys = LocalKeys(
        admin=secrets.admin_key,
        demo=secrets.demo_key,
        worker=secrets.worker_key,
        service_passkey=secrets.service_passkey,
    )
    ensure_local_accounts(settings, keys)
