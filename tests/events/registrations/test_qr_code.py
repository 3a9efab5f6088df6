"""The picture with the QR code of a registration has exactly the modules of the code, and room around it."""

from io import BytesIO

from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from holdfast.events.registrations.code import qr_code, qr_png


@settings(max_examples=30, deadline=None)
@given(st.text("abcdefghijklmnopqrstuvwxyz0123456789-/:.", min_size=1, max_size=300))
def test_the_picture_is_the_one_that_the_library_draws(url: str) -> None:
    drawn = BytesIO()
    qr_code(url).save(drawn, kind="png", scale=5, border=4)

    picture, expected = (Image.open(file) for file in (BytesIO(qr_png(url)), drawn))

    assert picture.mode == "1"
    assert picture.size == expected.size
    assert picture.tobytes() == expected.convert("1").tobytes()
