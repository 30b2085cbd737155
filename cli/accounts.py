"""`horde user` and `horde key`."""

import click

from app.domain.errors import NotFound
from app.domain.pricing import kudos
from app.models.account import AccountKind
from app.services import accounts
from app.services.kudos import balance
from cli.context import open_transaction
from cli.output import ROW_ID, json_option, show, show_all

KINDS = [kind.value for kind in (AccountKind.USER, AccountKind.ADMIN, AccountKind.SERVICE)]


@click.group()
def user() -> None:
    """Create and show accounts."""


@user.command("create")
@click.argument("username")
@click.option("--kind", type=click.Choice(KINDS), default=AccountKind.USER.value, show_default=True)
@click.option("--passkey", help="A service account's passkey, at least 16 characters.")
@json_option
def create_user(username: str, kind: str, passkey: str | None, as_json: bool) -> None:
    """Create an account with a key. The key is shown here and never again."""
    if (passkey is not None) != (kind == AccountKind.SERVICE.value):
        raise click.UsageError("--passkey belongs to --kind service, and is needed there.")
    if passkey is not None and len(passkey) < 16:
        raise click.UsageError("--passkey: must have at least 16 characters.")
    with open_transaction() as transaction:
        made = accounts.create_user(transaction, username, AccountKind(kind))
        _, key = accounts.create_key(transaction, made, "first")
        if passkey is not None:
            accounts.set_passkey(transaction, made, passkey)
        alias = accounts.get_account(transaction, made).alias
    shown = {"id": made, "alias": alias, "kind": kind, "api_key": key}
    show(shown, as_json=as_json)


@user.command("show")
@click.argument("user_id", type=ROW_ID)
@json_option
def show_user(user_id: int, as_json: bool) -> None:
    """Show an account, its balance and its keys (their names, never the keys)."""
    with open_transaction() as transaction:
        found = accounts.get_account(transaction, user_id)
        keys = accounts.keys_of(transaction, user_id)
        shown = {
            "id": found.id,
            "alias": found.alias,
            "kind": found.kind,
            "trusted": found.trusted,
            "kudos": kudos(balance(transaction, user_id)),
            "created_at": found.created_at,
        }
        rows = [
            {"key_id": key.id, "name": key.name, "created_at": key.created_at, "revoked_at": key.revoked_at}
            for key in keys
        ]
    if as_json:
        show({**shown, "keys": rows}, as_json=True)
        return
    show(shown, as_json=False)
    show_all(rows, as_json=False)


@click.group()
def key() -> None:
    """Create and revoke keys."""


@key.command("create")
@click.argument("user_id", type=ROW_ID)
@click.option("--name", default="key", show_default=True, help="What the key is for.")
@json_option
def create_key(user_id: int, name: str, as_json: bool) -> None:
    """Give an account one more key. It is shown here and never again."""
    with open_transaction() as transaction:
        accounts.get_account(transaction, user_id)
        key_id, value = accounts.create_key(transaction, user_id, name)
    show({"key_id": key_id, "api_key": value}, as_json=as_json)


@key.command("revoke")
@click.argument("key_id", type=ROW_ID)
def revoke_key(key_id: int) -> None:
    """Make a key useless from now on."""
    with open_transaction() as transaction:
        if not accounts.revoke_key(transaction, key_id):
            raise NotFound(f"no key in use has the id {key_id}.")
    click.echo(f"key {key_id} is revoked")
