"""URLs that images may be fetched from, by their form alone (reliability D1)."""

import pytest

from app.domain.errors import ContractRefusal
from app.domain.images.remote_url import parse_remote_url

PATH = "messages[0].content[1].image_url.url"


@pytest.mark.parametrize(
    "url",
    [
        "http://127.0.0.1/", "http://[::1]/", "http://[::ffff:127.0.0.1]/", "http://[64:ff9b::7f00:1]/",
        "http://[2002:7f00:1::]/", "http://169.254.169.254/latest/meta-data/", "http://[fd00:ec2::254]/",
        "http://100.100.100.200/", "http://168.63.129.16/", "http://192.0.0.192/", "http://10.0.0.5/",
        "http://100.64.0.1/", "http://198.18.0.1/", "http://255.255.255.255/", "http://224.0.0.1/",
        "http://good.example@127.0.0.1/", "http://user:pass@good.example/x.png", "http://127.0.0.1\\@good.example/",
        "http://good.example\t/x", "http://good.example/a b", "http://good.example/\x00", "http://good.example/\n",
        "http://good.example:22/", "http://good.example:6379/", "http://good.example:70000/",
        "http://good.example:80:80/", "http://good.example:443/", "https://good.example:80/", "file:///etc/passwd",
        "ftp://good.example/x", "gopher://good.example/", "//good.example/x", "http:good.example", "http://",
        "http://[::1", "http://" + "a" * 300 + "/", "http://good.example/" + "a" * 9000, "javascript:alert(1)",
    ],
)  # fmt: skip
def test_anything_but_a_plain_url_of_a_public_host_is_refused(url: str) -> None:
    with pytest.raises(ContractRefusal) as refusal:
        parse_remote_url(url, PATH)
    assert refusal.value.code == "invalid_image_url"
    assert refusal.value.param == PATH


def test_a_url_is_taken_apart() -> None:
    remote = parse_remote_url("https://Good.Example/a/b.png?size=1#part", PATH)
    assert (remote.scheme, remote.host, remote.port, remote.target) == ("https", "good.example", 443, "/a/b.png?size=1")
    assert remote.host_header == "good.example"


def test_other_letters_are_written_as_http_needs_them() -> None:
    remote = parse_remote_url("http://bücher.example/ü.png", PATH)
    assert (remote.host, remote.target) == ("xn--bcher-kva.example", "/%C3%BC.png")


def test_a_host_that_the_operator_lists_may_be_private_at_that_port_only() -> None:
    allowed = frozenset({"127.0.0.1:8000"})
    assert parse_remote_url("http://127.0.0.1:8000/x", PATH, allowed).is_allowed
    with pytest.raises(ContractRefusal):
        parse_remote_url("http://127.0.0.1:8001/x", PATH, allowed)
