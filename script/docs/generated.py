"""Fills the documentation's tables from the code that they describe; a hook of mkdocs.yml.

A page holds `<!-- generated: NAME -->` where a table belongs. NAME is a key of
`GENERATORS`; any other fails the build. Nothing here needs a service or a setting.
"""

import ast
import inspect
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

import click
import orjson
from annotated_types import Ge, Gt, Le, Lt
from flask import Flask
from pydantic import SecretStr
from pydantic.fields import FieldInfo
from pydantic_settings import BaseSettings

from app.api.document import build_document
from app.domain import errors, redis_keys, states
from app.domain.contract.drop_table import NO_OPS
from app.domain.contract.horde_options import HordeOptions, accepted_by
from app.domain.contract.readers import READERS, UNSUPPORTED_KEYS
from app.domain.contract.strict_schema import FORMATS, KEYWORDS
from app.domain.task_names import Queue, TaskName
from app.factory import register_routes
from app.services.invariants import ALWAYS, AT_REST
from cli.main import main
from config.fault_points import FaultPoint
from config.settings import LauncherSettings, Settings
from front.errors import FRONT_CODE, STATUS_OF_CODE
from launcher.procfile import read_procfile
from tasks.schedule import beat_schedule

ROOT = Path(__file__).resolve().parents[2]
MARKER = re.compile(r"<!-- generated: ([a-z-]+) -->")
SOURCE_NOTE = re.compile(r" \((?:details|contract|front|native[ -]api|architecture|operations)[^)]*\)", re.IGNORECASE)
METRIC_KINDS = {"Counter": "counter", "Gauge": "gauge", "Histogram": "histogram", "GaugeMetricFamily": "gauge"}
"""What declares a metric in the sources, and which kind it is."""

SOURCES = ("app", "front", "tasks")
HELP_WIDTH = 96
BOUND_SIGNS = {Ge: ("≥", "ge"), Gt: (">", "gt"), Le: ("≤", "le"), Lt: ("<", "lt")}

Rows = Sequence[Sequence[str]]


def table(head: Sequence[str], rows: Rows) -> str:
    """A Markdown table."""
    lines = [_row(head), _row(["---"] * len(head)), *(_row(row) for row in rows)]
    return "\n".join(lines)


def _row(cells: Sequence[str]) -> str:
    escaped = (cell.replace("|", "\\|").replace("\n", " ") for cell in cells)
    return f"| {' | '.join(escaped)} |"


def first_line(docstring: str | None) -> str:
    """The first line of a docstring, which states what the thing is, without its source in the specification."""
    return SOURCE_NOTE.sub("", (docstring or "").strip().partition("\n")[0])


def settings_table(settings: type[BaseSettings]) -> str:
    """The variables of one settings class."""
    rows = [
        [f"`{name.upper()}`", _default(field), _bounds(field), field.description or ""]
        for name, field in settings.model_fields.items()
    ]
    return table(["variable", "default", "range", "meaning"], rows)


def _default(field: FieldInfo) -> str:
    if field.is_required():
        return "**required**"
    value = field.default
    if value is None:
        return "not set"
    return "a secret" if isinstance(value, SecretStr) else f"`{value}`"


def _bounds(field: FieldInfo) -> str:
    shown = []
    for bound in field.metadata:
        if type(bound) in BOUND_SIGNS:
            sign, name = BOUND_SIGNS[type(bound)]
            shown.append(f"{sign} {getattr(bound, name)}")
    return ", ".join(shown)


def native_codes() -> str:
    """One row a class of the error tree, with what the front makes of its code."""
    rows = [
        [f"`{error.rc}`", str(error.status), _on_the_front(error), first_line(error.__doc__)]
        for error in sorted(subclasses(errors.HordeError), key=lambda error: (error.status, error.rc))
    ]
    return table(["code (`rc`)", "status", "on the front", "meaning"], rows)


def subclasses(root: type[errors.HordeError]) -> Iterator[type[errors.HordeError]]:
    """Every class below `root` in the module of the error tree."""
    for child in root.__subclasses__():
        if child.__module__.startswith(f"{errors.__name__}."):
            yield child
            yield from subclasses(child)


def _on_the_front(error: type[errors.HordeError]) -> str:
    code, status = FRONT_CODE.get(error.rc, error.rc), STATUS_OF_CODE.get(error.rc, error.status)
    return "the same" if (code, status) == (error.rc, error.status) else f"{status} `{code}`"


def front_codes() -> str:
    """One row a problem that the front states itself: `Problem(status, code, ...)` in front/errors.py."""
    rows = []
    for function in _functions("front/errors.py"):
        for call in _calls(function, {"Problem"}):
            status, code = (_constant(argument) for argument in call.args[:2]) if len(call.args) > 1 else (None, None)
            if isinstance(status, int) and isinstance(code, str):
                rows.append([f"`{code}`", str(status), first_line(ast.get_docstring(function))])
    unique = dict.fromkeys(tuple(row) for row in sorted(rows, key=lambda row: (row[1], row[0])))
    return table(["code", "status", "when"], list(unique))


@dataclass(frozen=True, order=True)
class Metric:
    """A metric as the sources declare it, by the name that it is scraped under."""

    name: str
    kind: str
    labels: tuple[str, ...]
    meaning: str
    where: str

    @property
    def series(self) -> frozenset[str]:
        """The names of its series."""
        parts = ("_bucket", "_sum", "_count") if self.kind == "histogram" else ("",)
        return frozenset(f"{self.name}{part}" for part in parts)


def metrics() -> str:
    """Every metric that the sources declare."""
    rows = [
        [f"`{each.name}`", each.kind, ", ".join(f"`{label}`" for label in each.labels), each.meaning, f"`{each.where}`"]
        for each in sorted(declared_metrics())
    ]
    return table(["metric", "kind", "labels", "meaning", "where"], rows)


def declared_metrics() -> Iterator[Metric]:
    """Every metric that the sources declare."""
    for path in source_files(*SOURCES):
        for call in _calls(ast.parse(path.read_text()), {*METRIC_KINDS, "gauge"}):
            name, meaning = (_constant(argument) for argument in (*call.args, None, None)[:2])
            if isinstance(name, str) and isinstance(meaning, str):
                called = _called(call)
                full = f"horde_front_{name}" if called == "gauge" else name
                suffix = "_total" if called == "Counter" else ""
                kind = METRIC_KINDS.get(called, "gauge")
                yield Metric(f"{full}{suffix}", kind, _labels(call), meaning, str(path.relative_to(ROOT)))


def _labels(call: ast.Call) -> tuple[str, ...]:
    given = [*call.args, *(keyword.value for keyword in call.keywords if keyword.arg == "labels")]
    lists = [argument for argument in given if isinstance(argument, ast.List)]
    return tuple(str(_constant(item)) for labels in lists for item in labels.elts)


def tasks() -> str:
    """Every Celery task: its queue, how often beat sends it, and what it does."""
    schedule = beat_schedule(Settings.model_construct())
    meanings = dict(_task_docstrings())
    rows = []
    for task in TaskName:
        every = f"every {schedule[task.value]['schedule']:g} s" if task.value in schedule else "on demand"
        rows.append([f"`{task.value}`", f"`{task.queue.value}`", every, meanings[task.name]])
    return table(["task", "queue", "sent by beat", "does"], rows)


def _task_docstrings() -> Iterator[tuple[str, str]]:
    for path in sorted((ROOT / "tasks").glob("*.py")):
        for function in _functions(str(path.relative_to(ROOT))):
            for decorator in function.decorator_list:
                for name in ast.walk(decorator):
                    if isinstance(name, ast.Attribute) and name.attr in TaskName.__members__:
                        yield name.attr, first_line(ast.get_docstring(function))


def redis_names() -> str:
    """Every name that redis_keys builds."""
    rows = []
    for function in vars(redis_keys).values():
        if inspect.isfunction(function) and inspect.signature(function).return_annotation is str:
            named = [f"<{parameter.replace('_', ' ')}>" for parameter in inspect.signature(function).parameters]
            rows.append([f"`{function(*named)}`", first_line(function.__doc__)])
    return table(["name", "use"], rows)


def state_diagram(moves: Mapping[Any, frozenset[Any]]) -> str:
    """The allowed moves as a diagram; the first state is where rows begin."""
    first: StrEnum = next(iter(moves))
    lines = ["```mermaid", "stateDiagram-v2", f"    [*] --> {first.value}"]
    for source, targets in moves.items():
        lines += [f"    {source.value} --> {target.value}" for target in sorted(targets)]
        if not targets:
            lines.append(f"    {source.value} --> [*]")
    return "\n".join([*lines, "```"])


def processes() -> str:
    """The Procfile's lines."""
    rows = [[f"`{name}`", f"`{command}`"] for name, command in read_procfile(ROOT / "Procfile").items()]
    return table(["process", "command"], rows)


def commands() -> str:
    """The help of every `horde` command."""
    sections = []
    for words, command in walk(main, ("horde",)):
        context = click.Context(command, info_name=" ".join(words), terminal_width=HELP_WIDTH)
        sections.append(f"## `{' '.join(words)}`\n\n```text\n{command.get_help(context)}\n```")
    return "\n\n".join(sections)


def walk(command: click.Command, words: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    """A command and all below it, by the words that call them."""
    yield words, command
    if isinstance(command, click.Group):
        for name, child in command.commands.items():
            yield from walk(child, (*words, name))


def source_files(*folders: str) -> list[Path]:
    """The Python files of these folders of the checkout."""
    return sorted(path for folder in folders for path in (ROOT / folder).rglob("*.py"))


def _functions(path: str) -> list[ast.FunctionDef]:
    tree = ast.parse((ROOT / path).read_text())
    return [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]


def _calls(tree: ast.AST, names: frozenset[str] | set[str]) -> list[ast.Call]:
    return [node for node in ast.walk(tree) if isinstance(node, ast.Call) and _called(node) in names]


def _called(call: ast.Call) -> str:
    function = call.func
    if isinstance(function, ast.Attribute):
        return function.attr
    return function.id if isinstance(function, ast.Name) else ""


def _constant(node: ast.expr | None) -> object:
    return node.value if isinstance(node, ast.Constant) else None


def contract_members() -> str:
    """Every top-level member that is accepted, in the order in which they are checked."""
    rows = [[f"`{name}`", member.accepts, member.default, member.use.value] for name, member in READERS.items()]
    return table(["member", "accepted", "default, which counts as left out", "use"], rows)


def contract_refused() -> str:
    """OpenAI's members that are refused by name, and the values that the front drops before."""
    dropped: dict[str, list[str]] = {}
    for key, value in NO_OPS:
        dropped.setdefault(key, []).append(f"`{orjson.dumps(value).decode()}`")
    rows = [
        [f"`{name}`", advice, " or ".join(dropped.get(name, [])) or "nothing"]
        for name, advice in sorted(UNSUPPORTED_KEYS.items())
    ]
    return table(["member", "what to do instead", "the front drops"], rows)


def horde_members() -> str:
    """Every member of the `horde` object."""
    defaults = HordeOptions().stored()
    rows = [
        [f"`{name}`", accepted_by(name), "none" if default in (None, []) else f"`{orjson.dumps(default).decode()}`"]
        for name, default in defaults.items()
    ]
    return table(["member of `horde`", "accepted", "default"], rows)


def native_routes() -> str:
    """One table a tag of the native API's document: every route with its answers and refusals."""
    app = Flask("documentation", static_folder=None)
    register_routes(app)
    by_tag: dict[str, list[list[str]]] = {}
    for path, methods in build_document(app)["paths"].items():
        for method, operation in methods.items():
            row = [f"`{method.upper()} {path}`", operation["summary"], _asked(operation), _answered(operation)]
            by_tag.setdefault(operation["tags"][0], []).append(row)
    head = ["route", "does", "key", "answers"]
    return "\n\n".join(f"## {tag.capitalize()}\n\n{table(head, rows)}" for tag, rows in sorted(by_tag.items()))


def _asked(operation: Mapping[str, Any]) -> str:
    security = operation.get("security")
    if security is None:
        return "no"
    return "if given" if {} in security else "yes"


def _answered(operation: Mapping[str, Any]) -> str:
    usual = {"`BadRequest`", "`InvalidAPIKey`", "`DeletedUser`", "`SharedKeyExpired`", "`PayloadTooLarge`"}
    shown = []
    for status, answer in operation["responses"].items():
        codes = [code for code in answer["description"].split(", ") if code not in usual | {"`service_unavailable`"}]
        if status < "300":
            shown.append(status)
        elif codes and codes[0].startswith("`"):
            shown.append(f"{status} {', '.join(codes)}")
    return "; ".join(shown)


def _listed(items: Sequence[str]) -> str:
    return "\n".join(f"- {item}" for item in items)


GENERATORS: dict[str, Callable[[], str]] = {
    "settings": lambda: settings_table(Settings),
    "launcher-settings": lambda: settings_table(LauncherSettings),
    "native-codes": native_codes,
    "front-codes": front_codes,
    "metrics": metrics,
    "tasks": tasks,
    "queues": lambda: ", ".join(f"`{queue.value}`" for queue in Queue),
    "redis-names": redis_names,
    "request-states": lambda: state_diagram(states.REQUEST_MOVES),
    "generation-states": lambda: state_diagram(states.GENERATION_MOVES),
    "processes": processes,
    "commands": commands,
    "invariants-always": lambda: _listed(list(ALWAYS)),
    "invariants-at-rest": lambda: _listed(list(AT_REST)),
    "fault-points": lambda: _listed([f"`{point.value}`" for point in FaultPoint]),
    "contract-members": contract_members,
    "contract-refused": contract_refused,
    "horde-members": horde_members,
    "strict-keywords": lambda: ", ".join(f"`{keyword}`" for keyword in sorted(KEYWORDS)),
    "strict-formats": lambda: ", ".join(f"`{name}`" for name in FORMATS),
    "native-routes": native_routes,
    "no-ops": lambda: ", ".join(f"`{key}: {orjson.dumps(value).decode()}`" for key, value in NO_OPS),
}
"""What a page may ask for."""


def fill(markdown: str) -> str:
    """The page with every marker replaced.

    Raises KeyError for a marker that names no generator.
    """
    return MARKER.sub(lambda match: GENERATORS[match[1]](), markdown)


def on_page_markdown(markdown: str, **_: object) -> str:
    """Fill a page before MkDocs renders it."""
    return fill(markdown)
