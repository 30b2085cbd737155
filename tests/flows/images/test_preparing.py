"""What a worker gets of the images that a requester sent (images I1, I2, details D22)."""

import pytest

from tests.flows.images.seeing import REPLY, Seeing, images_in
from tests.support import pictures
from tests.support.file_server import FileServer
from tests.support.hand_worker import call
from tests.support.pictures import BLUE, RED, WHITE, data_url, is_near, opened, picture

GOOD = {
    "png": picture("PNG"),
    "jpeg": picture("JPEG"),
    "webp": picture("WEBP"),
    "gif": picture("GIF"),
    "palette": picture("PNG", mode="P"),
    "cmyk": picture("JPEG", mode="CMYK"),
    "polyglot": picture("PNG") + b"PK\x03\x04 <script>alert(1)</script>",
}
BAD = {
    "truncated": (pictures.noise((400, 300))[:4000], "image_parse_error"),
    "empty": (b"", "invalid_image_url"),
    "text": (b"this is no image at all", "image_parse_error"),
    "html": (b"<html><body>not found</body></html>", "image_parse_error"),
    "svg": (b'<svg xmlns="http://www.w3.org/2000/svg"/>', "image_parse_error"),
    "heic": (b"\x00\x00\x00\x18ftypheic\x00\x00\x00\x00mif1heic", "image_parse_error"),
    "eps": (b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 1 1\n", "image_parse_error"),
    "bmp": (picture("BMP"), "image_parse_error"),
    "tiff": (picture("TIFF"), "image_parse_error"),
    "ico": (picture("ICO"), "image_parse_error"),
    "100 megapixels": (pictures.png_of(10_000, 10_000), "image_too_large"),
    "81 megapixels": (pictures.png_of(9_000, 9_000), "image_too_large"),
    "zip bomb chunk": (pictures.zip_bomb_chunk(), "image_parse_error"),
    "1 x 20000": (pictures.png_of(1, 20_000), "image_unusable"),
}


def served(seeing: Seeing, *urls: str) -> list[bytes]:
    """Send images and let a worker fetch them."""
    worker = seeing.worker("url")
    accepted = seeing.ask(*urls)
    assert accepted.status == 202, accepted
    assert accepted.body["status"]["state"] == "preparing"
    job = worker.wait_for_job()
    found = images_in(job)
    assert worker.submit(job["id"], REPLY).status == 200
    assert seeing.wait_for(accepted.body["id"], "done")["kudos"] > 0
    return found


def test_images_of_every_kind_reach_the_worker_as_jpeg_in_their_order(seeing: Seeing) -> None:
    found = served(seeing, *(data_url(data) for data in GOOD.values()))
    assert len(found) == len(GOOD)
    for name, jpeg in zip(GOOD, found, strict=True):
        image = opened(jpeg)
        assert (image.format, image.size) == ("JPEG", (64, 48)), name
        assert is_near(image.getpixel((32, 4)), RED), name
        assert is_near(image.getpixel((32, 44)), BLUE), name


def test_what_is_special_about_an_image_is_settled(seeing: Seeing) -> None:
    sent = [
        pictures.half_transparent(),
        pictures.rotated(),
        pictures.animated(200, (50, 50)),
        pictures.grey_16_bits(),
        pictures.png_of(1, 1),
        pictures.noise((4000, 3000), quality=60),
        pictures.with_comment("secret place " * 1000),
    ]
    flat, turned, first, grey, dot, large, plain = (opened(jpeg) for jpeg in served(seeing, *map(data_url, sent)))
    assert is_near(flat.getpixel((32, 4)), RED)
    assert is_near(flat.getpixel((32, 44)), WHITE)
    assert turned.size == (32, 64)
    assert is_near(turned.getpixel((28, 32)), RED)
    assert is_near(turned.getpixel((4, 32)), BLUE)
    assert not turned.getexif()
    assert is_near(first.getpixel((20, 20)), RED)
    assert [is_near(grey.getpixel((x, 8)), (x, x, x), 12) for x in (0, 100, 200, 255)] == [True] * 4
    assert dot.size == (1, 1)
    assert large.size == (2048, 1536)
    assert "comment" not in plain.info


def test_nothing_that_hides_behind_an_image_reaches_the_worker(seeing: Seeing) -> None:
    (jpeg,) = served(seeing, data_url(GOOD["polyglot"]))
    assert b"script" not in jpeg
    assert b"PK\x03\x04" not in jpeg


@pytest.mark.parametrize("name", BAD)
def test_an_image_that_cannot_be_used_is_refused_with_its_code_and_place(seeing: Seeing, name: str) -> None:
    data, code = BAD[name]
    seeing.worker("url")
    url = data_url(data) if data else "data:image/png;base64,===="
    if code == "invalid_image_url":
        answer = seeing.ask(data_url(picture()), url)
        fault = answer.body
        assert answer.status == 400
    else:
        fault = seeing.fault_of(data_url(picture()), url)
    assert fault["rc"] == code
    assert fault["param"] == "messages[0].content[2].image_url.url"
    assert "messages[0].content[2]" in fault["message"]


REFUSED_AT_ONCE = {
    "text/html": ("data:text/html;base64,PGI+", "invalid_value"),
    "image/svg+xml": ("data:image/svg+xml;base64,PHN2Zz4=", "image_parse_error"),
    "image/heic": ("data:image/heic;base64,AAAA", "image_parse_error"),
    "not base64": ("data:image/png;base64,%%%%", "invalid_image_url"),
    "no padding": ("data:image/png;base64,AAA", "invalid_image_url"),
    "too large": ("data:image/png;base64," + "A" * (4 * (20 * 2**20 + 3) // 3 // 4 * 4), "image_too_large"),
    "file": ("file:///etc/passwd", "invalid_value"),
    "ftp": ("ftp://good.example/x.png", "invalid_value"),
}


@pytest.mark.parametrize("name", REFUSED_AT_ONCE)
def test_the_form_of_an_image_is_checked_in_the_request(seeing: Seeing, name: str) -> None:
    url, code = REFUSED_AT_ONCE[name]
    seeing.worker("url")
    answer = seeing.ask(url)
    assert (answer.status, answer.body["rc"]) == (400, code)
    assert answer.body["param"] == "messages[0].content[1].image_url.url"


def test_a_media_type_that_the_bytes_contradict_does_not_matter(seeing: Seeing) -> None:
    (jpeg,) = served(seeing, data_url(picture("WEBP"), "image/png"))
    assert opened(jpeg).size == (64, 48)


def test_twenty_images_are_taken_and_twenty_one_are_not(seeing: Seeing) -> None:
    url = data_url(picture())
    assert len(served(seeing, *[url] * 20)) == 20
    answer = seeing.ask(*[url] * 21)
    assert (answer.status, answer.body["rc"]) == (400, "too_many_images")


def test_an_image_is_fetched_by_its_url(seeing: Seeing, files: FileServer) -> None:
    url = files.serve("/red.png", picture())
    (jpeg,) = served(seeing, files.redirect("/there", url))
    assert opened(jpeg).size == (64, 48)


def test_detail_is_kept(seeing: Seeing) -> None:
    worker = seeing.worker("url")
    body = seeing.body(data_url(picture()))
    body["messages"][0]["content"][1]["image_url"]["detail"] = "low"
    accepted = call("POST", f"{seeing.horde.native}/api/v2/generate/chat/async", body)
    job = worker.wait_for_job()
    assert job["payload"]["messages"][0]["content"][1]["image_url"]["detail"] == "low"
    seeing.cancel(accepted.body["id"])
    worker.submit(job["id"], REPLY)


def test_bodies_without_images_keep_the_smaller_limit(seeing: Seeing) -> None:
    seeing.worker("url")
    large = "x" * (11 * 2**20)
    answer = seeing.ask(text=large)
    assert (answer.status, answer.body["rc"]) == (413, "PayloadTooLarge")
    # With an image it is only its form that counts: here the image is what is wrong.
    answer = seeing.ask("data:image/png;base64,A", text=large)
    assert (answer.status, answer.body["rc"]) == (400, "invalid_image_url")
