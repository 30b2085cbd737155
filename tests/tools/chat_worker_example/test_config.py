"""Configuration from variables and flags."""

from pathlib import Path

import pytest

from tools.chat_worker_example.config import BACKEND, HORDE, OPTIONS, WORKER, ConfigError, load_config

COMPLETE = {
    "HORDE_URL": "http://horde.example/",
    "HORDE_API_KEY": "key",
    "BACKEND_URL": "http://127.0.0.1:8080/v1/",
    "MODEL_NAME": "llama3:8b",
    "WORKER_NAME": "Box One",
}


def test_urls_lose_their_api_prefix_and_the_model_its_colon() -> None:
    config = load_config([], {**COMPLETE, "HORDE_URL": "https://horde.example/api/v2"})
    assert (config.horde_url, config.backend_url) == ("https://horde.example", "http://127.0.0.1:8080")
    assert (config.model_name, config.model_id) == ("llama3:8b", "llama3-8b")


def test_defaults_apply_where_nothing_is_set() -> None:
    config = load_config([], {**COMPLETE, "WORKER_THREADS": ""})
    assert (config.threads, config.max_length, config.max_context_length) == (1, 512, None)
    assert (config.template_overhead, config.declare, config.health_file, config.view) == (
        None,
        frozenset(),
        None,
        False,
    )


def test_a_flag_wins_over_its_variable() -> None:
    config = load_config(["--threads", "4", "--health-file=/run/w"], {**COMPLETE, "WORKER_THREADS": "2"})
    assert (config.threads, config.health_file) == (4, Path("/run/w"))


def test_every_problem_is_named_at_once() -> None:
    with pytest.raises(ConfigError) as error:
        load_config(["--colour"], {"HORDE_URL": "horde", "MAX_LENGTH": "9"})
    named = {problem.split(" ")[0].rstrip(":") for problem in error.value.problems}
    required = {option.variable for option in OPTIONS if option.field in WORKER}
    assert named == required | {"MAX_LENGTH", "--colour"}


@pytest.mark.parametrize(
    ("variable", "value", "said"),
    [
        ("WORKER_THREADS", "0", "from 1 to 50"),
        ("WORKER_THREADS", "51", "from 1 to 50"),
        ("WORKER_THREADS", "²", "whole number"),
        ("POP_WAIT_SECONDS", "26", "from 0 to 25"),
        ("IMAGE_TRANSPORTS", "url,pigeon", "does not know pigeon"),
        ("TEMPLATE_OVERHEAD", "-1", "from 0 up"),
        ("STOP_GRACE_SECONDS", "nan", "seconds"),
        ("STOP_GRACE_SECONDS", "soon", "seconds"),
        ("HORDE_API_KEY", "two words", "without spaces"),
        ("BACKEND_API_KEY", "clé", "ASCII"),
        ("WORKER_NAME", "x" * 101, "100 characters"),
        ("DECLARE", "tools,tols", "tols"),
        ("DECLARE", "prompt_overflow_refused", "measured"),
        ("NO_DECLARE", "image", "image"),
        ("CHAT_FEATURES", "tools", "called DECLARE"),
        ("BACKEND", "llama", "llama.cpp"),
        ("QUIET_HOURS", "23-7", "23:00-07:00"),
        ("QUIET_HOURS", "08:00-08:00", "empty"),
        ("TOOLS_MAX_TEMPERATURE", "3", "temperature"),
        ("PROGRESS_SECONDS", "0", "seconds"),
        ("CA_FILE", "/no/such/file", "exists"),
        ("VIEW", "maybe", "yes or no"),
        ("HEALTH_FILE", "/no/such/folder/health", "folder"),
        ("MAX_CONTEXT_LENGTH", "512", "must be below MAX_CONTEXT_LENGTH (512)"),
    ],
)
def test_a_bad_value_is_refused_with_what_is_wanted(variable: str, value: str, said: str) -> None:
    load_config([], COMPLETE)
    with pytest.raises(ConfigError) as error:
        load_config([], {**COMPLETE, variable: value})
    [problem] = error.value.problems
    assert variable in problem
    assert said in problem


def test_a_key_is_not_repeated_in_a_complaint() -> None:
    with pytest.raises(ConfigError) as error:
        load_config([], {**COMPLETE, "HORDE_API_KEY": "my secret"})
    assert "secret" not in str(error.value)


def test_features_are_read_as_a_list() -> None:
    config = load_config([], {**COMPLETE, "DECLARE": " tools, reasoning ,,"})
    assert config.declare == {"tools", "reasoning"}


def test_a_name_cannot_be_declared_and_left_out() -> None:
    with pytest.raises(ConfigError, match="both name tools"):
        load_config(["--declare", "tools,images", "--no-declare", "tools"], COMPLETE)


def test_a_switch_needs_no_value_as_a_flag() -> None:
    assert load_config(["--view"], COMPLETE).view
    assert load_config([], {**COMPLETE, "VIEW": "yes"}).view


@pytest.mark.parametrize("needs", [BACKEND, HORDE])
def test_a_command_asks_for_no_more_than_it_needs(needs: frozenset[str]) -> None:
    needed = {option.variable: COMPLETE[option.variable] for option in OPTIONS if option.field in needs}
    assert load_config([], needed, needs).threads == 1
    with pytest.raises(ConfigError):
        load_config([], needed)
