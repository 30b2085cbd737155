"""Asking a running horde over HTTP whether it works."""

import http.client
from urllib.parse import urlsplit

import orjson

from launcher.errors import LauncherError

READY_SECONDS = 5
CHAT_SECONDS = 120
HOPELESS = {http.client.UNAUTHORIZED, http.client.FORBIDDEN}
"""Statuses that no waiting turns into an answer."""


def ask_ready(url: str) -> str | None:
    """Ask a health route; returns none when it is ready, else what is missing."""
    parts = urlsplit(url)
    connection = http.client.HTTPConnection(parts.netloc, timeout=READY_SECONDS)
    try:
        connection.request("GET", parts.path)
        response = connection.getresponse()
        body = response.read()
    except (OSError, http.client.HTTPException) as error:
        return f"{url}: {error}"
    finally:
        connection.close()
    if response.status == http.client.OK:
        return None
    return f"{url} answers {response.status}: {body.decode(errors='replace')}"


def ask_chat(front: str, key: str, model: str) -> str | None:
    """Ask the front for a short completion; returns none when it is answered, else why not.

    Raises LauncherError when asking again is no use.
    """
    body = {"model": model, "messages": [{"role": "user", "content": "Say hello."}], "max_tokens": 16}
    headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}
    connection = http.client.HTTPConnection(urlsplit(front).netloc, timeout=CHAT_SECONDS)
    try:
        connection.request("POST", "/v1/chat/completions", orjson.dumps(body), headers)
        response = connection.getresponse()
        answer = response.read()
    except (OSError, http.client.HTTPException) as error:
        return f"the front does not answer: {error}"
    finally:
        connection.close()
    if response.status == http.client.OK:
        return None
    problem = f"the front answers {response.status}: {answer.decode(errors='replace')}"
    if response.status in HOPELESS:
        raise LauncherError(f"A chat completion does not work: {problem}")
    return problem
