"""Documentation that can rot is tested: what the code has, the pages name, and what they name is there."""

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote

import click
import pytest

from app.domain.contract.horde_options import KEYS as HORDE_KEYS
from app.domain.contract.readers import READERS, REASONING_EFFORTS
from app.domain.declaration import FEATURE_NAMES, Declaration, Limit, Transport
from app.domain.errors import HordeError
from app.domain.states import GenerationState, RequestState
from app.domain.task_names import Queue, TaskName
from app.models import Base
from app.services.faults import WORKER_FAULTS
from cli.main import main
from config.fault_points import FaultPoint
from config.settings import LauncherSettings, Settings
from front.passthrough import PATHS
from launcher.procfile import read_procfile
from script.docs.generated import GENERATORS, MARKER, ROOT, fill, source_files, subclasses, walk

DOCS = ROOT / "docs"
PAGES = sorted(DOCS.rglob("*.md"))
TEXTS = [ROOT / "README.md", ROOT / "CHANGELOG.md", *PAGES]
DECISIONS = sorted(path for path in (DOCS / "decisions").glob("*.md") if path.name != "index.md")
ERRORS: list[type[HordeError]] = sorted(subclasses(HordeError), key=lambda error: error.rc)
SETTING_NAMES = {name.upper() for settings in (Settings, LauncherSettings) for name in settings.model_fields}

FOLDERS = "app|bench|cli|config|docs|front|launcher|migrations|pages|script|tasks|tests|tools"
CODE_PATH = re.compile(rf"`((?:{FOLDERS})/[\w./-]*)`")
MARKDOWN_LINK = re.compile(r"\[[^\]]*\]\(([^)#\s]+)")
ROUTE = re.compile(r"""blueprint\.(get|post|put|patch|delete)\(\s*"([^"]+)"|"(/(?:api/)?v2/generate/text/pop)\"""")
SHOWN_COMMAND = re.compile(r"(?:^\s*|`)(?:\S*bin/)?horde ([a-z][^`]*)")
REDIS_NAME = re.compile(r"""f?["'](horde:[a-z:]+)""")


def read(page: str) -> str:
    """A page as its reader gets it."""
    return fill((DOCS / page).read_text(encoding="utf-8"))


def name(path: Path) -> str:
    """How a test names a file."""
    return str(path.relative_to(ROOT))


@pytest.mark.parametrize("setting", sorted(SETTING_NAMES))
def test_every_setting_is_on_the_settings_page(setting: str) -> None:
    assert f"`{setting}`" in read("reference/settings.md")


@pytest.mark.parametrize("settings", [Settings, LauncherSettings])
def test_every_setting_says_what_it_means(settings: type[Settings] | type[LauncherSettings]) -> None:
    assert [name for name, field in settings.model_fields.items() if not field.description] == []


@pytest.mark.parametrize("point", FaultPoint)
def test_every_fault_point_is_on_the_settings_page(point: FaultPoint) -> None:
    assert f"`{point.value}`" in read("reference/settings.md")


@pytest.mark.parametrize("task", TaskName)
def test_every_task_is_listed_with_what_it_does(task: TaskName) -> None:
    row = next(line for line in read("reference/redis-and-celery.md").splitlines() if f"`{task.value}`" in line)
    assert row.strip("| ").split("|")[-1].strip().endswith(".")


@pytest.mark.parametrize("queue", Queue)
def test_every_queue_is_listed(queue: Queue) -> None:
    assert f"`{queue.value}`" in read("reference/redis-and-celery.md")


def test_every_redis_name_in_the_code_is_listed() -> None:
    used = {match for path in source_files("app", "front", "tasks") for match in REDIS_NAME.findall(path.read_text())}
    assert used
    assert [name for name in sorted(used) if name not in read("reference/redis-and-celery.md")] == []


@pytest.mark.parametrize("error", ERRORS)
def test_every_refusal_is_listed_with_its_meaning(error: type[HordeError]) -> None:
    begin = f"| `{error.rc}` | {error.status} |"
    row = next(line for line in read("reference/return-codes.md").splitlines() if line.startswith(begin))
    assert len(row.split("|")[-2].strip()) > 10


@pytest.mark.parametrize("words", [" ".join(words) for words, _ in walk(main, ("horde",))])
def test_every_command_has_its_heading(words: str) -> None:
    assert f"## `{words}`\n" in read("reference/commands.md")


def commands_of(page: Path) -> Iterator[str]:
    """Every `horde` command that a page shows, with the words behind it, in text and in blocks."""
    for line in page.read_text(encoding="utf-8").splitlines():
        yield from (match[1] for match in SHOWN_COMMAND.finditer(line))


def misfit(shown: str) -> str | None:
    """What of a shown command the parser does not have: a word that is no command, or an option; None if all is there.

    `create|show` stands for both; words in capitals and in quotes are arguments.
    """
    words = shown.partition(" #")[0].split()
    found: list[click.Command] = [main]
    while words and isinstance(found[0], click.Group):
        names = words.pop(0).split("|")
        groups = [command for command in found if isinstance(command, click.Group)]
        unknown = [name for group in groups for name in names if name not in group.commands]
        if unknown:
            return unknown[0]
        found = [group.commands[name] for group in groups for name in names]
    known = {option for command in found for parameter in command.params for option in parameter.opts}
    return next((word for word in words if word.startswith("--") and word not in known), None)


@pytest.mark.parametrize("page", TEXTS, ids=name)
def test_every_command_that_a_page_shows_is_one_of_the_parsers(page: Path) -> None:
    assert [shown for shown in commands_of(page) if misfit(shown) is not None] == []


def test_commands_are_shown_and_a_wrong_one_is_found() -> None:
    shown = [command for page in TEXTS for command in commands_of(page)]
    assert {"user create alice", "ban list", "worker pause NAME"} <= {each.partition(" #")[0].strip() for each in shown}
    wrong = ("user vanish", "user create|vanish", "ban user A --for 3", "ban user A --hours 3")
    assert [misfit(each) for each in wrong] == ["vanish", "vanish", "--for", None]


def test_every_command_that_tells_something_can_tell_it_to_a_script() -> None:
    speaks = {"horde up", "horde down", "horde serve", "horde user export"}
    leaves = {
        " ".join(words): {option for parameter in command.params for option in parameter.opts}
        for words, command in walk(main, ("horde",))
        if not isinstance(command, click.Group)
    }
    assert speaks < set(leaves)
    assert [words for words, options in leaves.items() if "--json" not in options] == [
        words for words in leaves if words in speaks
    ]


def test_every_command_says_what_it_does() -> None:
    assert [" ".join(words) for words, command in walk(main, ("horde",)) if not command.help] == []


@pytest.mark.parametrize("process", read_procfile(ROOT / "Procfile"))
def test_every_process_is_explained_to_who_deploys(process: str) -> None:
    rows = [line for line in read("how-to/deploy.md").splitlines() if line.startswith(f"| `{process}` |")]
    assert len(rows) == 2, "one row from the Procfile, one that says what the process needs"


@pytest.mark.parametrize("state", sorted({*RequestState, *GenerationState}))
def test_every_state_is_in_a_diagram(state: str) -> None:
    diagrams = read("reference/native-chat-api.md") + read("reference/worker-api.md")
    assert re.search(rf"^    {state} --> ", diagrams, re.MULTILINE)


@pytest.mark.parametrize("declared", sorted({*FEATURE_NAMES, *Limit, *Transport}))
def test_every_name_of_a_declaration_is_explained(declared: str) -> None:
    assert f"`{declared}`" in read("reference/declarations.md")


def test_every_key_of_a_declaration_is_explained() -> None:
    page = read("reference/declarations.md") + read("reference/worker-api.md")
    keys = set(Declaration.__dataclass_fields__) - {"features"} | {"chat_features", "wait", "pop_key"}
    assert [key for key in sorted(keys) if f"`{key}`" not in page] == []


@pytest.mark.parametrize("fault", sorted(WORKER_FAULTS))
def test_every_fault_of_a_worker_is_listed(fault: str) -> None:
    assert f"`{fault}`" in read("reference/worker-api.md")


def test_every_field_of_a_request_is_listed() -> None:
    fields = {*READERS, "model", "models"} - {"operation_key", "dry_run", "stream_options", "horde"}
    page = read("reference/front.md")
    assert [field for field in sorted(fields) if f"`{field}`" not in page] == []
    assert [effort for effort in REASONING_EFFORTS if effort not in page] == []


def test_every_key_of_the_horde_object_is_listed() -> None:
    assert [key for key in sorted(HORDE_KEYS) if f"`{key}`" not in read("reference/front.md")] == []


def routes(*folders: str) -> Iterator[str]:
    """Every route that a blueprint of these folders names, up to its first parameter."""
    for path in source_files(*folders):
        for _, plain, pop in ROUTE.findall(path.read_text(encoding="utf-8")):
            yield (plain or pop).partition("<")[0]


def test_every_native_route_is_documented() -> None:
    pages = "".join(read(f"reference/{page}.md") for page in ("native-chat-api", "worker-api", "accounts", "status"))
    pages += fill(read("reference/native-api.md"))
    found = set(routes("app/api"))
    assert found
    assert [route for route in sorted(found) if route not in pages] == []


def test_every_route_of_the_front_is_documented() -> None:
    page = read("reference/front.md")
    found = {*routes("front"), *(path.partition("<")[0].removesuffix("/") for path in PATHS)}
    assert found
    assert [route for route in sorted(found) if route not in page] == []


def test_every_table_is_in_the_architecture() -> None:
    page = read("explanation/architecture.md")
    assert [table for table in sorted(Base.metadata.tables) if f"`{table}`" not in page] == []


def test_every_event_of_the_logs_is_listed() -> None:
    logged = re.compile(r"""log\.(?:info|warning|error|exception)\(\s*"([a-z_.]+)",""")
    events = {event for path in source_files("app", "tasks") for event in logged.findall(path.read_text())}
    assert events
    page = read("reference/metrics.md")
    assert [event for event in sorted(events) if f"`{event}`" not in page] == []


@pytest.mark.parametrize("generator", GENERATORS)
def test_every_generated_part_is_on_some_page(generator: str) -> None:
    assert GENERATORS[generator]().strip()
    assert any(generator in MARKER.findall(page.read_text(encoding="utf-8")) for page in PAGES)


def test_a_marker_without_a_generator_fails_the_build() -> None:
    with pytest.raises(KeyError, match="no-such-thing"):
        fill("<!-- generated: no-such-thing -->")


@pytest.mark.parametrize("decision", DECISIONS, ids=name)
def test_every_decision_is_in_the_index_and_whole(decision: Path) -> None:
    number, text = decision.name[:4], decision.read_text(encoding="utf-8")
    title = text.partition("\n")[0].removeprefix(f"# {number} ")
    assert f"| [{number}]({decision.name}) | {title} |" in read("decisions/index.md")
    for heading in ("Context", "Decision", "Rejected", "Consequences"):
        assert f"\n## {heading}\n" in text


def test_every_decision_has_its_own_number() -> None:
    numbers = [decision.name[:4] for decision in DECISIONS]
    assert len(numbers) == len(set(numbers))


@pytest.mark.parametrize("text", TEXTS, ids=name)
def test_every_path_in_the_code_that_is_named_exists(text: Path) -> None:
    named = CODE_PATH.findall(text.read_text(encoding="utf-8"))
    assert [path for path in named if not (ROOT / path).exists()] == []


def test_paths_in_the_code_are_named_at_all() -> None:
    assert any(CODE_PATH.search(text.read_text(encoding="utf-8")) for text in TEXTS)


def test_every_page_is_in_the_navigation() -> None:
    navigation = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    assert [name(page) for page in PAGES if f" {page.relative_to(DOCS)}\n" not in navigation] == []


def test_every_relative_link_of_the_readme_leads_somewhere() -> None:
    links = MARKDOWN_LINK.findall((ROOT / "README.md").read_text(encoding="utf-8"))
    relative = [link for link in links if "://" not in link]
    assert relative
    assert [link for link in relative if not (ROOT / unquote(link)).exists()] == []


def test_the_changelogs_newest_version_is_the_packages() -> None:
    versions = re.findall(r"^## \[(\d[^]]*)\]", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), re.MULTILINE)
    package = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert versions[0] == package["version"]


def test_the_example_environment_names_settings_only() -> None:
    lines = (ROOT / ".env.example").read_text(encoding="utf-8").splitlines()
    named = {match[1] for line in lines if (match := re.match(r"(?:# )?([A-Z][A-Z0-9_]+)=", line))}
    assert named - SETTING_NAMES == set()
    assert {name.upper() for name, field in Settings.model_fields.items() if field.is_required()} <= named


def test_the_example_environment_can_be_used_as_it_is() -> None:
    settings = Settings(_env_file=ROOT / ".env.example")
    assert settings.native_roots == ("http://127.0.0.1:7001",)
