"""The document and the routes of a running horde, held against each other by a fuzzer (operations O6)."""

import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest

from tests.support.horde import KEYS, HordeProcesses

EXAMPLES = 8
SEED = 20261201

ALLOWED = """
[checks.not_a_server_error]
expected-statuses = ["2xx", "3xx", "4xx", "503"]
"""
"""That nobody serves a model is a 503, and no failure of the server."""


@pytest.mark.slow
def test_a_fuzzer_finds_no_failure_of_the_server_and_no_answer_that_is_not_documented(
    horde: HordeProcesses, tmp_path: Path
) -> None:
    (tmp_path / "schemathesis.toml").write_text(ALLOWED)
    run = subprocess.run(
        [
            str(Path(sys.executable).parent / "schemathesis"),
            "--config-file=schemathesis.toml",
            "run",
            f"{horde.native}/api/openapi.json",
            "--url",
            horde.native,
            f"--header=apikey: {KEYS.demo}",
            "--phases=examples,fuzzing",
            "--checks=not_a_server_error,status_code_conformance,content_type_conformance,response_schema_conformance",
            f"--max-examples={EXAMPLES}",
            f"--seed={SEED}",
            "--generation-database=none",
            "--no-color",
            "--warnings=off",
            "--max-time=60",
            "--exclude-path=/metrics",
        ],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=110,
        check=False,
    )
    assert run.returncode == 0, run.stdout[-6000:] + run.stderr[-2000:]


@pytest.mark.parametrize(
    "path",
    ["/api", "/api/openapi.json", "/api/ui/swagger-ui.css", "/register", "/privacy", "/.well-known/serviceinfo"],
)
def test_a_front_passes_the_pages_about_the_api_on(horde: HordeProcesses, path: str) -> None:
    with urllib.request.urlopen(f"{horde.front}{path}", timeout=20) as answer:  # noqa: S310 - a URL of ours
        assert answer.status == 200
        assert answer.headers.get_all("Access-Control-Allow-Origin") == ["*"]
        assert answer.read()
