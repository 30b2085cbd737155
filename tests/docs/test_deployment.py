"""The files of `deploy/` run the Procfile's processes, every one of them, and fit what the pages say."""

import re
import subprocess

import pytest
import yaml

from config.setting_types import proxies_in
from front.server import KEEP_ALIVE_SECONDS
from launcher.procfile import read_procfile
from script.docs.generated import ROOT

DEPLOY = ROOT / "deploy"
PROCESSES = read_procfile(ROOT / "Procfile")
LASTING = sorted(PROCESSES.keys() - {"release"})


def run_process(tmp_path_checkout: str, instance: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["sh", f"{tmp_path_checkout}/script/process", instance], capture_output=True, text=True, timeout=20, check=False
    )


@pytest.fixture
def checkout(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A checkout whose Procfile says what it would run."""
    folder = tmp_path_factory.mktemp("checkout")
    (folder / "script").mkdir()
    (folder / "script" / "process").write_text((ROOT / "script" / "process").read_text())
    lines = [f'{name}: echo {name} "{name}${{HORDE_INSTANCE}}@host"' for name in PROCESSES]
    (folder / "Procfile").write_text("\n".join(lines) + "\n")
    return str(folder)


@pytest.mark.parametrize("name", PROCESSES)
def test_a_process_is_run_by_its_line(checkout: str, name: str) -> None:
    assert run_process(checkout, name).stdout == f"{name} {name}@host\n"


def test_a_replica_has_a_name_of_its_own(checkout: str) -> None:
    assert run_process(checkout, "tasks-2").stdout == "tasks tasks-2@host\n"


def test_an_unknown_process_is_refused_with_the_known_ones(checkout: str) -> None:
    refused = run_process(checkout, "nobody")
    assert refused.returncode == 2
    assert all(name in refused.stderr for name in PROCESSES)


@pytest.mark.parametrize("name", ["verdict", "tasks", "fetch", "media"])
def test_a_line_of_celery_gives_a_replica_its_name(name: str) -> None:
    assert f'--hostname "{name}${{HORDE_INSTANCE}}@%h"' in PROCESSES[name]


def test_systemd_starts_every_lasting_process() -> None:
    target = (DEPLOY / "systemd" / "horde.target").read_text()
    assert sorted(re.findall(r"horde@([a-z]+)\.service", target)) == LASTING


def test_systemd_runs_the_procfiles_line() -> None:
    unit = (DEPLOY / "systemd" / "horde@.service").read_text()
    assert "ExecStart=/opt/horde/script/process %i" in unit


def test_compose_runs_every_process_by_its_name() -> None:
    services = yaml.safe_load((DEPLOY / "compose.yaml").read_text())["services"]
    assert {name: service["command"] for name, service in services.items() if name in PROCESSES} == {
        name: [name] for name in PROCESSES
    }
    assert 'ENTRYPOINT ["script/process"]' in (DEPLOY / "Dockerfile").read_text()


@pytest.mark.parametrize("file", ["systemd/horde.env.example", "Dockerfile"])
def test_a_task_process_is_told_to_stop_softly(file: str) -> None:
    # Without it a SIGTERM to the whole group ends the children at once, in the middle of their tasks.
    assert re.search(r"(?:^| )REMAP_SIGTERM=SIGQUIT$", (DEPLOY / file).read_text(), re.MULTILINE)


def nginx_site() -> str:
    return (DEPLOY / "nginx" / "horde.conf").read_text()


def test_nginx_waits_longer_than_an_answer_may_take() -> None:
    site = nginx_site()
    longest = re.search(r"proxy_read_timeout (\d+)s;", site)
    assert longest is not None
    assert int(longest[1]) > 580
    assert "proxy_buffering off;" in site


def test_nginx_closes_a_connection_that_rests_before_the_front_does() -> None:
    # Else nginx would send a call into a connection that is being closed. Sixty seconds are nginx's own default.
    kept = re.search(r"keepalive_timeout (\d+)s;", nginx_site())
    assert (int(kept[1]) if kept else 60) < KEEP_ALIVE_SECONDS


def test_nginx_repeats_only_calls_that_may_be_made_twice() -> None:
    locations = dict(re.findall(r"location (?:~ )?(\S+) \{(.*?)\n    \}", nginx_site(), re.DOTALL))
    repeated = [pattern for pattern, rules in locations.items() if "non_idempotent" in rules]
    for path, is_repeated in {
        "/v1/chat/completions": True,
        "/v1/v1/chat/completions/": True,
        "/chat/completions": True,
        "/api/v2/generate/text/pop": True,
        "/v2/generate/text/submit": True,
        "/api/v2/generate/text/progress": True,
        "/api/v2/generate/text/async": True,
        "/api/v2/generate/chat/async": False,
        "/api/v2/kudos/transfer": False,
    }.items():
        assert any(re.search(pattern, path) for pattern in repeated) == is_repeated, path


def test_nginx_gives_each_call_a_key_and_the_fronts_know_it() -> None:
    assert "proxy_set_header Horde-Repeat-Key $request_id;" in nginx_site()
    settings = dict(
        line.split("=", 1)
        for line in (DEPLOY / "systemd" / "horde.env.example").read_text().splitlines()
        if not line.startswith("#")
    )
    assert isinstance(proxies_in(settings["TRUSTED_PROXIES"]), tuple)
