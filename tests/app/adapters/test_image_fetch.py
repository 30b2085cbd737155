"""Fetching an image so that nothing inside the network is reached (images I3, reliability D1).

Sockets and servers are real; the resolver is the test's, so that a name can lead anywhere.
"""

import gzip
import socket
import ssl
import time
from collections.abc import Callable, Iterator
from io import BytesIO

import pytest

from app.adapters import image_fetch
from app.adapters.image_fetch import FetchRules, fetch
from app.domain.errors import ContractRefusal
from tests.support.file_server import FileServer, dripping, response
from tests.support.pictures import picture

PATH = "messages[0].content[0].image_url.url"
PUBLIC = "93.184.216.34"


class Resolver:
    """Answers each name with what the test says, one answer after the other, and counts the questions."""

    def __init__(self, **answers: list[list[str]]) -> None:
        self.answers = {name.replace("_", "."): answer for name, answer in answers.items()}
        self.asked: list[str] = []

    def __call__(self, host: str, port: int) -> list[str]:
        self.asked.append(host)
        answers = self.answers.get(host, [])
        if not answers:
            raise socket.gaierror("no such name")
        return answers.pop(0) if len(answers) > 1 else answers[0]


@pytest.fixture
def files() -> Iterator[FileServer]:
    with FileServer() as server:
        yield server


def rules(files: FileServer, resolver: Callable[[str, int], list[str]] = image_fetch.system_resolver) -> FetchRules:
    """Rules under which the test's server may be reached, and nothing else that is private."""
    return FetchRules(seconds=2, most_bytes=10_000, allowed_hosts=frozenset({files.host}), resolve=resolver)


def fetched(url: str, given: FetchRules) -> bytes:
    target = BytesIO()
    assert fetch(url, PATH, target, given) == len(target.getvalue())
    return target.getvalue()


def code_of(url: str, given: FetchRules) -> str:
    with pytest.raises(ContractRefusal) as refusal:
        fetch(url, PATH, BytesIO(), given)
    assert refusal.value.param == PATH
    return refusal.value.code


def test_a_file_is_fetched_without_telling_anything_about_us(files: FileServer) -> None:
    assert fetched(files.serve("/a.png?b=c", picture()), rules(files)) == picture()
    (head,) = files.requests
    assert head.startswith("GET /a.png?b=c HTTP/1.1\r\n")
    assert f"Host: {files.host}\r\n" in head
    assert "Cookie" not in head
    assert "Authorization" not in head


@pytest.mark.parametrize(
    "host", ["127.1", "0x7f000001", "2130706433", "0177.0.0.1", "017700000001", "0", "localhost", "①②⑦.⓪.⓪.①"]
)
def test_a_host_that_the_system_turns_into_a_private_address_is_refused(files: FileServer, host: str) -> None:
    assert code_of(f"http://{host}/", rules(files)) in {"invalid_image_url", "image_fetch_failed"}
    assert files.requests == []


@pytest.mark.parametrize(
    "answer", [["127.0.0.1"], [PUBLIC, "::1"], ["10.0.0.5", PUBLIC], ["169.254.169.254"], ["fe80::1"]]
)
def test_a_name_is_refused_when_any_of_its_addresses_is_private(files: FileServer, answer: list[str]) -> None:
    assert code_of("http://good.example/", rules(files, Resolver(good_example=[answer]))) == "invalid_image_url"


def test_a_name_is_resolved_once_and_the_connection_goes_to_what_was_checked(
    files: FileServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    connected: list[tuple[str, int]] = []

    def connect(address: tuple[str, int], timeout: float) -> socket.socket:
        connected.append(address)
        opened = socket.socket()
        opened.settimeout(timeout)
        opened.connect(("127.0.0.1", files.port))
        return opened

    monkeypatch.setattr(socket, "create_connection", connect)
    files.serve("/x.png", picture())
    rebinding = Resolver(good_example=[[PUBLIC], ["127.0.0.1"]])
    assert fetched("http://good.example/x.png", rules(files, rebinding)) == picture()
    assert connected == [(PUBLIC, 80)]
    assert rebinding.asked == ["good.example"]
    assert "Host: good.example\r\n" in files.requests[0]


def test_another_address_is_tried_when_the_first_does_not_answer(
    files: FileServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = socket.create_connection

    def connect(address: tuple[str, int], timeout: float) -> socket.socket:
        if address[0] != PUBLIC:
            raise OSError("unreachable")
        return real(("127.0.0.1", files.port), timeout=timeout)

    monkeypatch.setattr(socket, "create_connection", connect)
    files.serve("/x.png", picture())
    both = Resolver(good_example=[["2606:4700::1111", PUBLIC]])
    assert fetched("http://good.example/x.png", rules(files, both)) == picture()


@pytest.mark.parametrize(
    "location",
    [
        "http://127.0.0.1/", "http://[::1]/", "file:///etc/passwd", "http://169.254.169.254/latest/meta-data/",
        "//127.0.0.1/x", "http://localhost/", "http://user@good.example/", "gopher://good.example/", "http://evil.example:6379/",
    ],
)  # fmt: skip
def test_a_redirect_is_checked_like_the_first_url(files: FileServer, location: str) -> None:
    assert code_of(files.redirect("/go", location), rules(files)) == "invalid_image_url"


def test_three_redirects_are_followed_and_four_are_not(files: FileServer) -> None:
    files.serve("/0", picture())
    for number in range(1, 5):
        files.redirect(f"/{number}", f"/{number - 1}", status=[301, 302, 307, 308][number - 1])
    assert fetched(files.url("/3"), rules(files)) == picture()
    assert code_of(files.url("/4"), rules(files)) == "image_fetch_failed"
    files.redirect("/loop", "/loop")
    assert code_of(files.url("/loop"), rules(files)) == "image_fetch_failed"


HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: image/png\r\n"
SLOW = {
    "a byte now and then": dripping(HEAD + b"\r\n"),
    "headers without end": dripping(b"HTTP/1.1 200 OK\r\n", b"X-More: x\r\n"),
    "a status line without end": dripping(b"HTTP/1.1 ", b"2"),
    "silence": dripping(b"", b"", 1.0, 60),
}


@pytest.mark.parametrize("name", SLOW)
def test_a_server_that_takes_too_long_is_cut_off(files: FileServer, name: str) -> None:
    files.answers["/slow"] = SLOW[name]
    begun = time.monotonic()
    assert code_of(files.url("/slow"), rules(files)) == "image_fetch_failed"
    assert time.monotonic() - begun < 10


def test_a_name_server_that_takes_too_long_is_cut_off(files: FileServer) -> None:
    def slow(_host: str, _port: int) -> list[str]:
        time.sleep(4)
        return [PUBLIC]

    assert code_of("http://good.example/", rules(files, slow)) == "image_fetch_failed"


START = picture()[:8]
LARGE = {
    "declared": HEAD + b"Content-Length: 10000000000\r\n\r\n",
    "sent": HEAD + b"\r\n" + START + b"x" * 20_000,
    "in chunks": HEAD
    + b"Transfer-Encoding: chunked\r\n\r\n"
    + (b"1000\r\n" + START.ljust(4096, b"x") + b"\r\n") * 4
    + b"0\r\n\r\n",
}


@pytest.mark.parametrize("name", LARGE)
def test_a_file_that_is_too_large_is_cut_off(files: FileServer, name: str) -> None:
    files.answers["/large"] = LARGE[name]
    assert code_of(files.url("/large"), rules(files)) == "image_too_large"


BROKEN = {
    "a length that is too long": HEAD + b"Content-Length: 500\r\n\r\nshort",
    "nothing": HEAD + b"Content-Length: 0\r\n\r\n",
    "no http": b"SSH-2.0-OpenSSH\r\n",
    "compressed zeros": response(200, gzip.compress(bytes(10_000_000)), {"Content-Encoding": "gzip"}),
    "not found": response(404, b"no", {"Content-Length": "2"}),
    "an error": response(500, b"no", {"Content-Length": "2"}),
    "a redirect without a target": response(302, b"", {"Content-Length": "0"}),
    "a broken redirect": response(302, b"", {"Location": "http://[::1", "Content-Length": "0"}),
}


@pytest.mark.parametrize("name", BROKEN)
def test_an_answer_that_is_no_file_is_refused(files: FileServer, name: str) -> None:
    files.answers["/broken"] = BROKEN[name]
    assert code_of(files.url("/broken"), rules(files)) in {"image_fetch_failed", "invalid_image_url"}


@pytest.mark.parametrize("kind", ["PNG", "JPEG", "WEBP", "GIF"])
def test_every_format_that_is_taken_passes_whatever_its_server_calls_it(files: FileServer, kind: str) -> None:
    url = files.serve("/picture", picture(kind), "application/octet-stream")
    assert fetched(url, rules(files)) == picture(kind)


def test_what_does_not_begin_as_an_image_is_cut_off_at_its_first_bytes(files: FileServer) -> None:
    files.answers["/page"] = HEAD + b"Content-Length: 9000\r\n\r\n" + b"<html>".ljust(9000)
    target = BytesIO()
    with pytest.raises(ContractRefusal) as refusal:
        fetch(files.url("/page"), PATH, target, rules(files))
    assert (refusal.value.code, target.getvalue()) == ("image_parse_error", b"")


def test_a_server_that_is_not_there_is_refused() -> None:
    with FileServer() as gone:
        given = rules(gone)
    assert code_of(gone.url("/x"), given) == "image_fetch_failed"


def test_proxies_of_the_environment_are_not_used(files: FileServer, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "HTTP_PROXY", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    assert fetched(files.serve("/x.png", picture()), rules(files)) == picture()


def test_tls_is_asked_for_the_name_and_its_certificate_is_checked(
    files: FileServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    names: list[str | None] = []
    tls = ssl.create_default_context()
    real = tls.wrap_socket

    def wrap(
        opened: socket.socket, *args: object, server_hostname: str | None = None, **options: object
    ) -> ssl.SSLSocket:
        names.append(server_hostname)
        return real(opened, server_hostname=server_hostname)

    monkeypatch.setattr(tls, "wrap_socket", wrap)
    real_connect = socket.create_connection
    monkeypatch.setattr(
        socket, "create_connection", lambda _, timeout: real_connect(("127.0.0.1", files.port), timeout)
    )
    given = FetchRules(seconds=2, most_bytes=100, resolve=Resolver(good_example=[[PUBLIC]]), tls=tls)
    assert code_of("https://good.example/x", given) == "image_fetch_failed"
    assert names == ["good.example"]
    assert tls.check_hostname
    assert tls.verify_mode is ssl.CERT_REQUIRED
