"""Image parts leave a conversation and come back (images I1, I8)."""

from typing import Any

import pytest

from app.domain.errors import ContractRefusal
from app.domain.flattening import flatten
from app.domain.images.parts import GivenImage, ImageLimits, check_images, image_keys, lifted, with_urls

URL = "data:image/png;base64,QUJD"
MESSAGES: list[dict[str, Any]] = [
    {"role": "system", "content": "See."},
    {
        "role": "user",
        "content": [
            {"type": "text", "text": "What?"},
            {"type": "image_url", "image_url": {"url": URL, "detail": "low"}},
            {"type": "image_url", "image_url": {"url": "https://good.example/x.png"}},
        ],
    },
]


def test_a_lifted_conversation_holds_keys_and_nothing_of_the_client() -> None:
    kept, images = lifted(MESSAGES, "media/f")
    assert image_keys(kept) == ["media/f/0.jpg", "media/f/1.jpg"]
    assert [image.path for image in images] == [
        "messages[1].content[1].image_url.url",
        "messages[1].content[2].image_url.url",
    ]
    assert "good.example" not in str(kept)
    assert "QUJD" not in str(kept)
    assert kept[1]["content"][1]["image_url"]["detail"] == "low"
    assert URL in str(MESSAGES)


def test_lifting_changes_nothing_that_is_priced() -> None:
    kept, _ = lifted(MESSAGES, "media/f")
    assert flatten(kept) == flatten(MESSAGES) == "system: See.\nuser: What?"


def test_lifted_images_come_back_in_their_places() -> None:
    kept, images = lifted(MESSAGES, "media/f")
    urls = {image.key: image.url for image in images}
    assert with_urls(kept, lambda _path, key: urls[key]) == MESSAGES


def test_an_image_shows_its_url_to_no_log() -> None:
    assert "QUJD" not in repr(GivenImage(key="k", path="p", url=URL))


def test_the_size_of_a_data_url_is_known_to_the_byte_before_it_is_decoded() -> None:
    image = GivenImage(key="k", path="p", url="data:image/png;base64,QUJDRA==")
    assert image.data() == b"ABCD"
    check_images((image,), ImageLimits(bytes_each=4))
    with pytest.raises(ContractRefusal) as refusal:
        check_images((image,), ImageLimits(bytes_each=3))
    assert refusal.value.code == "image_too_large"


def test_a_horde_that_fetches_nothing_says_so() -> None:
    image = GivenImage(key="k", path="p", url="https://good.example/x.png")
    check_images((image,), ImageLimits())
    with pytest.raises(ContractRefusal, match="fetches no images"):
        check_images((image,), ImageLimits(remote=False))
