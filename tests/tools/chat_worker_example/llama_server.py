"""The real llama.cpp server and model of a fresh horde, as a process.

    python -m tests.tools.chat_worker_example.llama_server --help

With a context that is soon full, and on request with a template that shows tools, since the
model's own shows none.
"""

import argparse
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from launcher import local_backend

ROOT = Path(__file__).parents[3]

TOOL_TEMPLATE = """\
{{- bos_token }}
{%- if tools %}
    {{- 'Instructions: Each answer is a call to one of these functions:\n' }}
    {%- for tool in tools %}
        {{- tool | tojson + '\n' }}
    {%- endfor %}
    {{- '\n' }}
    {%- for tool in tools + tools + tools %}
        {{- 'Question: ' + tool.function.name + '\n\nAnswer in JSON:\n<call>\n{"name": "' + tool.function.name }}
        {{- '", "arguments": {}}\n</call>\n\n' }}
    {%- endfor %}
{%- endif %}
{%- for message in messages %}
    {{- {'system': 'Instructions', 'assistant': 'Answer', 'tool': 'Result'}.get(message.role, 'Question') + ':' }}
    {%- if message.content %}
        {{- ' ' + message.content | trim }}
    {%- endif %}
    {%- for call in message.tool_calls or [] %}
        {{- '\n<call>\n{"name": "' + call.function.name + '", "arguments": ' + call.function.arguments | tojson }}
        {{- '}\n</call>' }}
    {%- endfor %}
    {{- '\n\n' }}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- 'Answer in JSON:\n' if tools else 'Answer:' }}
{%- endif %}
"""
"""llama.cpp finds out from a template how it writes calls, then reads and enforces them in that form.

The grammar of a forced call lets a model talk before it calls, and so small a model never ends
its talk. The examples and the last line bring it to begin with the call.
"""


@contextmanager
def running_llama(models: Path, context: int, *, tools: bool = False) -> Iterator[str]:
    """A running server, which puts its model together in a folder; its address."""
    ours = ["--context", str(context), *(["--tools"] if tools else [])]
    theirs = ["--port", "0", "--models", str(models), "--alias", "local", "--slots", "1"]
    command = [sys.executable, "-m", "tests.tools.chat_worker_example.llama_server", *ours, *theirs]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as server:
        try:
            assert server.stdout is not None
            line = next((line for line in server.stdout if "http://" in line), "")
            yield line.split()[-1]
        finally:
            server.kill()


def main() -> None:
    """Serve until a signal ends it."""
    parser = argparse.ArgumentParser(description="The local model, with a context or a template of its own.")
    parser.add_argument("--context", type=int, required=True, help="tokens of one conversation")
    parser.add_argument("--tools", action="store_true", help="a template that shows tools")
    ours, theirs = parser.parse_known_args()
    local_backend.SLOT_CONTEXT_TOKENS = ours.context
    if ours.tools:
        local_backend.CHAT_TEMPLATE = TOOL_TEMPLATE
    sys.argv[1:] = theirs
    local_backend.main()


if __name__ == "__main__":
    main()
