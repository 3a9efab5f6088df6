"""The picture with the QR code of a registration has exactly the modules of the code, and room around it.

Codes are drawn by the library, or are sums of codes that it has drawn: so the tests can try many texts of one length.
"""

from io import BytesIO
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image
from segno import QRCode

from holdfast.events.registrations import entrance_code
from holdfast.events.registrations.entrance_code import qr_code, qr_png


@settings(max_examples=15)
@given(st.text("abcdefghijklmnopqrstuvwxyz0123456789-/:.", min_size=1, max_size=300))
def test_the_picture_is_the_one_that_the_library_draws(url: str) -> None:
    drawn = BytesIO()
    qr_code(url).save(drawn, kind="png", scale=5, border=4)

    picture, expected = (Image.open(file) for file in (BytesIO(qr_png(url)), drawn))

    assert picture.mode == "1"
    assert picture.size == expected.size
    assert picture.tobytes() == expected.convert("1").tobytes()


def assert_is_as_drawn(url: str) -> None:
    drawn = BytesIO()
    qr_code(url).save(drawn, kind="png", scale=5, border=4)

    picture, expected = (Image.open(file) for file in (BytesIO(qr_png(url)), drawn))

    assert picture.tobytes() == expected.convert("1").tobytes()


@settings(max_examples=4)
@given(st.integers(1, 200), st.randoms(use_true_random=False))
def test_the_pictures_of_many_texts_of_one_length_are_those_that_the_library_draws(length: int, random: Random) -> None:
    characters = "".join(map(chr, range(128)))
    for _ in range(40):
        assert_is_as_drawn("".join(random.choices(characters, k=length)))


def test_most_codes_of_links_follow_from_those_that_were_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    random, drawings = Random(7), 0

    def counted(url: str) -> QRCode:
        nonlocal drawings
        drawings += 1
        return qr_code(url)

    urls = [f"https://events.example.com/registrations/7-{random.randbytes(24).hex()}" for _ in range(600)]
    monkeypatch.setattr(entrance_code, "qr_code", counted)
    for url in urls:
        qr_png(url)

    assert drawings < 320
    monkeypatch.undo()
    for url in urls[-20:]:
        assert_is_as_drawn(url)


@pytest.mark.parametrize("text", ["0123456789", "HTTPS://EVENTS.EXAMPLE/1", "\u8336" * 4, "k\u00f6ln"])
def test_a_text_that_the_library_writes_in_another_way_has_its_own_code(text: str) -> None:
    for url in (text, "a" * len(text), text):
        assert_is_as_drawn(url)
