"""Accounts, keys and kudos over HTTP, as clients and people meet them."""

import re
import threading
from urllib.parse import urlencode

import openai
import pytest

from app.domain.system_accounts import ANONYMOUS_KEY
from tests.support.horde import KEYS, MODEL, Answer, HordeProcesses

KEY_ON_PAGE = re.compile(r'id="key"[^>]*value="([A-Za-z0-9_-]{22})"')


def register(horde: HordeProcesses, username: str) -> Answer:
    form = {"Content-Type": "application/x-www-form-urlencoded"}
    return horde.call("POST", "/register", body=urlencode({"username": username}), headers=form)


def registered(horde: HordeProcesses, username: str = "Ann") -> str:
    """Register and return the key that the page shows."""
    page = register(horde, username)
    found = KEY_ON_PAGE.search(page.body)
    assert found is not None, page.body
    return found[1]


def user(horde: HordeProcesses, key: str) -> dict[str, object]:
    answer = horde.call("GET", "/api/v2/find_user", key)
    assert answer.status == 200, answer
    return dict(answer.body)


def ask(horde: HordeProcesses, key: str, **more: object) -> openai.types.chat.ChatCompletion:
    answer = horde.openai(key).chat.completions.create(
        model=MODEL,
        messages=[{"role": "user", "content": "Hello."}],
        **more,  # type: ignore[call-overload]
    )
    assert isinstance(answer, openai.types.chat.ChatCompletion)
    return answer


def test_a_person_registers_and_asks_with_the_key_of_the_page(horde: HordeProcesses) -> None:
    form = horde.call("GET", "/register")
    assert (form.status, form.headers["cache-control"]) == (200, "no-store")
    assert '<form method="post" action="/register">' in form.body
    key = registered(horde)
    assert ask(horde, key).choices[0].message.content
    found = user(horde, key)
    assert re.fullmatch(r"Ann#\d+", str(found["username"]))


@pytest.mark.parametrize("name", ["ab", "x" * 31, "a#1", "a\x00bc", "", "<b>bold</b> " * 9])
def test_a_name_that_cannot_be_used_gets_the_form_again_with_the_reason(horde: HordeProcesses, name: str) -> None:
    page = register(horde, name)
    assert page.status == 400
    assert 'role="alert"' in page.body
    assert "<b>" not in page.body


def test_a_name_is_shown_as_text(horde: HordeProcesses) -> None:
    page = register(horde, "<i>Ann</i>")
    assert "<i>Ann" not in page.body
    assert "&lt;i&gt;Ann" in page.body


def test_two_people_of_one_name_get_two_accounts(horde: HordeProcesses) -> None:
    assert user(horde, registered(horde))["id"] != user(horde, registered(horde))["id"]


def test_the_account_of_a_key_is_shown_as_existing_clients_read_it(horde: HordeProcesses) -> None:
    found = user(horde, registered(horde))
    assert found["kudos"] == 14.0
    assert {"worker_ids", "sharedkey_ids", "kudos_details", "records", "concurrency", "trusted"} <= found.keys()
    assert isinstance(found["account_age"], int)
    public = horde.call("GET", f"/api/v2/users/{found['id']}")
    assert (public.status, public.body["username"]) == (200, found["username"])
    assert "worker_ids" not in public.body


def test_an_account_that_nobody_has_is_not_found(horde: HordeProcesses) -> None:
    for path, key, status, rc in (
        ("/find_user", None, 401, "InvalidAPIKey"),
        ("/find_user", "no-such-key-in-the-horde", 404, "UserNotFound"),
        ("/users/999999999", None, 404, "UserNotFound"),
        ("/users/999999999999999999999", None, 404, "UserNotFound"),
        ("/users/Ann", None, 404, "UserNotFound"),
        ("/users/1", None, 404, "UserNotFound"),
    ):
        answer = horde.call("GET", f"/api/v2{path}", key)
        assert (answer.status, answer.body["rc"]) == (status, rc)


def test_kudos_are_given_once_and_shown_on_both_sides(horde: HordeProcesses) -> None:
    key = registered(horde, "Receiver")
    name = str(user(horde, key)["username"])
    body = {"username": name, "amount": 100}
    once = {"Idempotency-Key": f"for-{name}"}
    for _ in range(2):
        answer = horde.call("POST", "/api/v2/kudos/transfer", KEYS.demo, body, once)
        assert (answer.status, answer.body) == (200, {"transferred": 100.0})
    assert user(horde, key)["kudos"] == 114.0
    other = horde.call("POST", "/api/v2/kudos/transfer", KEYS.demo, body | {"amount": 99}, once)
    assert (other.status, other.body["rc"]) == (400, "IdempotencyKeyConflict")


@pytest.mark.parametrize("amount", ["1e400", "-1", "0", "0.001", '"5"', "null", "[]", "true", "NaN", "1e300"])
def test_an_amount_that_cannot_be_given_is_refused(horde: HordeProcesses, amount: str) -> None:
    answer = horde.call(
        "POST", "/api/v2/kudos/transfer", KEYS.demo, f'{{"username": "worker#102", "amount": {amount}}}'
    )
    assert answer.status == 400


def test_two_transfers_of_everything_at_once_are_done_once(horde: HordeProcesses) -> None:
    key = registered(horde, "Giver")
    name = str(user(horde, key)["username"])
    horde.call("POST", "/api/v2/kudos/transfer", KEYS.demo, {"username": name, "amount": 50})
    target = str(user(horde, registered(horde, "Taker"))["username"])
    answers: list[Answer] = []

    def give() -> None:
        answers.append(horde.call("POST", "/api/v2/kudos/transfer", key, {"username": target, "amount": 50}))

    threads = [threading.Thread(target=give) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(answer.status for answer in answers) == [200, *[400] * 5]
    assert {answer.body["rc"] for answer in answers if answer.status == 400} == {"KudosTransferNotEnough"}
    assert user(horde, key)["kudos"] == 14.0


def test_a_shared_key_is_made_used_changed_and_deleted(horde: HordeProcesses) -> None:
    made = horde.call("PUT", "/api/v2/sharedkeys", KEYS.demo, {"name": "for friends", "kudos": 50, "expiry": 2})
    assert made.status == 200, made
    shared = made.body["id"]
    path = f"/api/v2/sharedkeys/{shared}"
    try:
        assert made.body["expiry"].endswith("GMT")
        assert (made.body["kudos"], made.body["utilized"]) == (50.0, 0.0)
        assert ask(horde, shared, max_tokens=32).choices[0].message.content
        assert str(user(horde, shared)["username"]).endswith("(Shared Key: for friends)")
        assert shared in user(horde, KEYS.demo)["sharedkey_ids"]  # type: ignore[operator]
        for method in ("PATCH", "DELETE"):
            refused = horde.call(method, path, KEYS.worker, {"kudos": 1})
            assert (refused.status, refused.body["rc"]) == (403, "NotOwner")
        changed = horde.call("PATCH", path, KEYS.demo, {"kudos": 0})
        assert (changed.status, changed.body["kudos"]) == (200, 0.0)
        with pytest.raises(openai.APIStatusError) as refused_chat:
            ask(horde, shared)
        assert (refused_chat.value.status_code, refused_chat.value.code) == (402, "SharedKeyEmpty")
        nothing = horde.call("PATCH", path, KEYS.demo, {})
        assert (nothing.status, nothing.body["rc"]) == (400, "NoSharedKeyModSelected")
    finally:
        assert horde.call("DELETE", path, KEYS.demo).status == 200
    gone = horde.call("GET", path)
    assert (gone.status, gone.body["rc"]) == (401, "InvalidAPIKey")


def test_an_account_may_share_three_keys_and_the_anonymous_one_none(horde: HordeProcesses) -> None:
    key = registered(horde)
    answers = [horde.call("PUT", "/api/v2/sharedkeys", key, {}) for _ in range(4)]
    assert [answer.status for answer in answers] == [200, 200, 200, 400]
    anonymous = horde.call("PUT", "/api/v2/sharedkeys", ANONYMOUS_KEY, {})
    assert (anonymous.status, anonymous.body["rc"]) == (403, "AnonForbiddenUserMod")


def test_a_request_whose_kudos_cannot_be_held_is_a_matter_of_payment_on_the_front(horde: HordeProcesses) -> None:
    key = registered(horde)
    assert ask(horde, key, max_tokens=400).choices
    with pytest.raises(openai.APIStatusError) as refused:
        ask(horde, key, max_tokens=400, extra_body={"horde": {"slow_workers": False}})
    assert (refused.value.status_code, refused.value.code) == (402, "KudosUpfront")
