"""aihordeclient as its users write it; it is made for images, so of a text horde it reads balance and models.

The last line that is printed is a JSON object of what was found out.
"""

import json
import os

import aihordeclient
from aihordeclient import AiHordeClient, IdentifiedError, InformerFrontend

aihordeclient.API_ROOT = f"{os.environ['AI_HORDE_URL']}v2/"


class Informer(InformerFrontend):
    """Says nothing to nobody."""

    def show_message(self, message, url="", title="", buttons=0):
        """Drop a message."""

    def show_error(self, message, url="", title="", buttons=0):
        """Drop an error."""

    def has_asked_for_update(self):
        """Ask for no update."""
        return True

    def just_asked_for_update(self):
        """Remember nothing."""

    def set_generated_image_url_status(self, url, valid_to):
        """Remember nothing."""

    def get_generated_image_url_status(self):
        """Remember nothing."""

    def update_status(self, text, progress=0.0):
        """Drop progress."""

    def set_finished(self):
        """Drop the end."""

    def path_store_directory(self):
        """Where files would go."""
        return os.environ["HOME"]


def client(key):
    """A client with a key."""
    settings = {"api_key": key, "max_wait_minutes": 1}
    return AiHordeClient("1", "", "", "", settings, "tests:1:none", Informer())


def refusal(key):
    """What the client makes of a key that nobody has."""
    try:
        return client(key).get_balance()
    except IdentifiedError as refused:
        return "not a valid API KEY" in str(refused)


print(
    json.dumps(
        {
            "balance": client(os.environ["HORDE_API_KEY"]).get_balance().endswith("kudos"),
            "image_models": client(os.environ["HORDE_API_KEY"]).get_model_status(),
            "unknown_key": refusal("no-such-key-in-the-horde"),
        }
    )
)
