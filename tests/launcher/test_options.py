"""Which options fit together."""

import pytest

from launcher.errors import LauncherError
from launcher.options import LOCAL_MODEL, UpOptions


@pytest.mark.parametrize(
    "arguments",
    [
        {"backend_url": "http://127.0.0.1:1"},
        {"backend_model": "m"},
        {"backend_url": "http://127.0.0.1:1", "backend_model": "m", "with_worker": False},
    ],
)
def test_options_that_contradict_each_other_are_refused(arguments: dict[str, str | bool]) -> None:
    with pytest.raises(LauncherError, match="--backend"):
        UpOptions(**arguments)  # type: ignore[arg-type]


def test_the_worker_serves_the_named_model_or_the_local_one() -> None:
    assert UpOptions().model == LOCAL_MODEL
    assert UpOptions(backend_url="http://127.0.0.1:1", backend_model="m").model == "m"


def test_a_model_is_asked_for_by_its_name_on_the_horde() -> None:
    assert UpOptions(backend_url="http://127.0.0.1:1", backend_model="qwen3:8b").served_as == "qwen3-8b"
