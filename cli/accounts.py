"""`horde user` and `horde key`."""

from datetime import UTC, datetime, timedelta

import click

from app.domain.errors import NotFound
from app.domain.pricing import KUDOS, kudos
from app.domain.shared_key_terms import LONGEST_EXPIRY_DAYS
from app.models.account import AccountKind
from app.services import accounts, passkeys
from app.services.bans import ban_of
from app.services.escrow import escrow_of
from app.services.kudos import LARGEST_AMOUNT, balance
from app.services.shared_keys import revoke_shared_keys
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
    if passkey is not None and len(passkey) < passkeys.SHORTEST_PASSKEY:
        raise click.UsageError(f"--passkey: must have at least {passkeys.SHORTEST_PASSKEY} characters.")
    with open_transaction() as transaction:
        made = accounts.create_user(transaction, username, AccountKind(kind))
        _, key = accounts.create_key(transaction, made, "first")
        if passkey is not None:
            passkeys.set_passkey(transaction, made, passkey)
        alias = accounts.get_account(transaction, made).alias
    shown = {"id": made, "alias": alias, "kind": kind, "api_key": key}
    show(shown, as_json=as_json)


@user.command("show")
@click.argument("account")
@json_option
def show_user(account: str, as_json: bool) -> None:
    """Show ACCOUNT, as Name#number or number: its balance, its ban, its keys (their names, never the keys)."""
    with open_transaction() as transaction:
        found = accounts.find_account(transaction, account)
        keys = accounts.keys_of(transaction, found.id)
        ban = ban_of(transaction, found.id)
        shown = {
            "id": found.id,
            "alias": found.alias,
            "kind": found.kind,
            "roles": ", ".join(found.roles) or None,
            "concurrency": found.concurrency,
            "kudos": kudos(balance(transaction, found.id)),
            "escrow": kudos(escrow_of(transaction, found.id)),
            "banned": ban is not None,
            "ban_ends_at": None if ban is None else ban["ends_at"],
            "created_at": found.created_at,
            "erased_at": found.erased_at,
        }
        rows = [
            {
                "key_id": key.id,
                "name": key.name,
                "shared": key.is_shared,
                "kudos_limit": None if key.kudos_limit is None else kudos(key.kudos_limit),
                "created_at": key.created_at,
                "expires_at": key.expires_at,
                "revoked_at": key.revoked_at,
            }
            for key in keys
        ]
    if as_json:
        show({**shown, "keys": rows}, as_json=True)
        return
    show(shown, as_json=False)
    show_all(rows, as_json=False)


@user.command("role")
@click.argument("account")
@click.argument("role", type=click.Choice([role.value for role in accounts.Role]))
@click.option("--remove", is_flag=True, help="Take the role instead of giving it.")
@json_option
def set_role(account: str, role: str, remove: bool, as_json: bool) -> None:
    """Give ACCOUNT, as Name#number or number, a role, or take it."""
    with open_transaction() as transaction:
        user_id = accounts.find_account(transaction, account).id
        accounts.set_role(transaction, user_id, accounts.Role(role), held=not remove)
        roles = accounts.get_account(transaction, user_id).roles
    show({"id": user_id, "roles": ", ".join(roles) or None}, as_json=as_json)


@user.command("concurrency")
@click.argument("account")
@click.argument("limit", type=click.IntRange(0, 2**31 - 1), required=False)
@json_option
def set_concurrency(account: str, limit: int | None, as_json: bool) -> None:
    """Let ACCOUNT have LIMIT requests waiting; without LIMIT, as many as its kind."""
    with open_transaction() as transaction:
        user_id = accounts.find_account(transaction, account).id
        accounts.set_concurrency(transaction, user_id, limit)
    show({"id": user_id, "concurrency": limit}, as_json=as_json)


@click.group()
def key() -> None:
    """Create and revoke keys."""


@key.command("create")
@click.argument("account")
@click.option("--name", default="key", show_default=True, help="What the key is for.")
@click.option("--days", type=click.IntRange(1, LONGEST_EXPIRY_DAYS), help="The key expires after so many days.")
@click.option(
    "--kudos-limit", type=click.FloatRange(0, LARGEST_AMOUNT / KUDOS), help="Kudos that may be spent with the key."
)
@json_option
def create_key(account: str, name: str, days: int | None, kudos_limit: float | None, as_json: bool) -> None:
    """Give ACCOUNT, as Name#number or number, one more key. It is shown here and never again."""
    with open_transaction() as transaction:
        key_id, value = accounts.create_key(
            transaction,
            accounts.find_account(transaction, account).id,
            name,
            expires_at=None if days is None else datetime.now(UTC) + timedelta(days=days),
            kudos_limit=None if kudos_limit is None else round(kudos_limit * KUDOS),
        )
    show({"key_id": key_id, "api_key": value}, as_json=as_json)


@key.command("revoke")
@click.argument("key_id", type=ROW_ID)
@json_option
def revoke_key(key_id: int, as_json: bool) -> None:
    """Make a key useless from now on."""
    with open_transaction() as transaction:
        if not accounts.revoke_key(transaction, key_id):
            raise NotFound(f"no key in use has the id {key_id}.")
    if as_json:
        show({"revoked": key_id}, as_json=True)
    else:
        click.echo(f"key {key_id} is revoked")


@key.command("revoke-shared")
@click.option("--account", help="Those of this account alone, as Name#number or number.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@json_option
def revoke_shared(account: str | None, yes: bool, as_json: bool) -> None:
    """Make every shared key useless, as after a leak of the database.

    Of other keys the database holds digests alone, from which nobody gets the
    key; a shared key is its own id. Their owners can make new ones.
    """
    if not yes:
        whose = account or "every account"
        click.confirm(f"Revoke the shared keys of {whose} for good?", abort=True, err=True)
    with open_transaction() as transaction:
        user_id = None if account is None else accounts.find_account(transaction, account).id
        revoked = revoke_shared_keys(transaction, user_id)
    show({"revoked": revoked}, as_json=as_json)
