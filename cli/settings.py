"""`horde settings`."""

import click

from cli.context import settings_or_exit
from cli.output import json_option, show
from config.settings import Settings


@click.command()
@json_option
@click.option("--explain", is_flag=True, help="Say what each setting means instead of its value.")
def settings(as_json: bool, explain: bool) -> None:
    """Print the settings in force, secrets masked."""
    if explain:
        shown: dict[str, object] = {name.upper(): field.description for name, field in Settings.model_fields.items()}
    else:
        shown = {name.upper(): value for name, value in settings_or_exit().masked().items()}
    show(shown, as_json=as_json)
