"""What a route takes and answers, said once beside it; the OpenAPI document is made of this (operations O6)."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, TypeVar

from flask import request
from pydantic import BaseModel, ValidationError

from app.domain.errors import HordeError, ValidationFailed
from app.domain.json_boundary import parse_worker_object

View = TypeVar("View", bound=Callable[..., Any])
Read = TypeVar("Read", bound=BaseModel)

ATTRIBUTE = "horde_operation"


class Key(Enum):
    """Whether a route asks for a key."""

    NONE = "none"
    OPTIONAL = "optional"
    REQUIRED = "required"


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """One route and method. `answers` maps a status to the type of its body; a string names another media type."""

    tag: str
    answers: Mapping[int, Any]
    key: Key = Key.NONE
    body: Any = None
    query: type[BaseModel] | None = None
    refuses: tuple[type[HordeError], ...] = ()
    headers: Mapping[str, str] = field(default_factory=dict)


def documented(operation: Operation) -> Callable[[View], View]:
    """Say what a view takes and answers. Its docstring is the rest of the documentation."""

    def mark(view: View) -> View:
        setattr(view, ATTRIBUTE, operation)
        return view

    return mark


def read_body(model: type[Read]) -> Read:
    """Return the call's JSON body as that model; keys that it does not have are ignored.

    Raises BadRequest when the body is no JSON object, and ValidationFailed naming every key that cannot be used.
    """
    return _read(model, parse_worker_object(request.get_data(cache=False)))


def read_query(model: type[Read]) -> Read:
    """Return the call's query as that model.

    Raises ValidationFailed naming every argument that cannot be used.
    """
    return _read(model, request.args.to_dict())


def _read(model: type[Read], given: Mapping[str, object]) -> Read:
    try:
        return model.model_validate(given)
    except ValidationError as error:
        raise ValidationFailed(
            {".".join(str(part) for part in problem["loc"]): problem["msg"] for problem in error.errors()}
        ) from None
