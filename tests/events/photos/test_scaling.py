"""Scaling a photo: its sizes are never wider, upright, of the first frame, and in its colours."""

import contextlib
import io
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from PIL import Image, ImageCms, ImageOps

from holdfast.events.photos.container import UnfitFile
from holdfast.events.photos.image import check_photo
from holdfast.events.photos.scaling import SIZE_WIDTHS, scale, widths_of
from tests.helpers.pictures import TYPES, animation, encode_image, picture

every_type = pytest.mark.parametrize("content_type", TYPES)
thoroughly = settings(max_examples=20, suppress_health_check=[HealthCheck.too_slow])
UPRIGHT_TYPES = [content_type for content_type in TYPES if content_type != "image/gif"]


def opened_webp(file: bytes) -> Image.Image:
    """What a file shows, which must be a WebP file without anything else in it."""
    with Image.open(io.BytesIO(file)) as image:
        assert image.format == "WEBP"
        assert not {"exif", "xmp", "icc_profile"} & image.info.keys()
        assert getattr(image, "n_frames", 1) == 1
        image.load()
        return image


def close(one: Any, other: Any, most: int = 40) -> bool:
    """Whether two colours are about the same."""
    return all(abs(a - b) <= most for a, b in zip(one, other, strict=True))


def corners(image: Image.Image) -> list[Any]:
    """The colours in the middle of the four quarters of an image."""
    return [
        image.convert("RGB").getpixel((image.width * across // 4, image.height * down // 4))
        for down in (1, 3)
        for across in (1, 3)
    ]


def quarters(width: int, height: int) -> Image.Image:
    """An image that looks different whichever way it is turned."""
    image = Image.new("RGB", (width, height), "red")
    image.paste("lime", (width // 2, 0, width, height // 2))
    image.paste("blue", (0, height // 2, width // 2, height))
    image.paste("white", (width // 2, height // 2, width, height))
    return image


@every_type
def test_a_photo_has_three_sizes_of_its_own_shape(content_type: str) -> None:
    scaled = scale(encode_image(quarters(2400, 180), content_type))

    assert (scaled.width, scaled.height) == (2400, 180)
    sizes = {width: opened_webp(file) for width, file in scaled.files.items()}
    assert {width: image.size for width, image in sizes.items()} == {
        480: (480, 36),
        960: (960, 72),
        1920: (1920, 144),
    }
    for image in sizes.values():
        assert all(map(close, corners(image), corners(quarters(480, 360))))


@pytest.mark.parametrize(
    ("width", "widths"),
    [(1, [1]), (479, [479]), (480, [480]), (481, [480, 481]), (1000, [480, 960, 1000]), (1921, [480, 960, 1920])],
)
def test_no_size_is_wider_than_its_photo(width: int, widths: list[int]) -> None:
    scaled = scale(picture("image/png", width, 10))

    assert {width: opened_webp(file).width for width, file in scaled.files.items()} == {
        width: width for width in widths
    }


@thoroughly
@given(width=st.integers(1, 40_000_000), height=st.integers(1, 40_000_000))
def test_a_photo_has_one_size_for_each_slot_and_none_wider_than_itself(width: int, height: int) -> None:
    widths = widths_of(width, height)

    assert widths == sorted(set(widths))
    assert widths[0] >= 1
    assert widths[-1] <= width
    assert len({min(slot for slot in SIZE_WIDTHS if slot >= width) for width in widths}) == len(widths)


@pytest.mark.parametrize(
    ("shape", "sizes"),
    [
        ((700, 20_000), {480: 13_714, 573: 16_371}),
        ((1, 30_000), {1: 16_383}),
        ((30_000, 1), {480: 1, 960: 1, 1920: 1}),
    ],
)
def test_a_photo_that_is_very_tall_or_flat_has_sizes_too(shape: tuple[int, int], sizes: dict[int, int]) -> None:
    scaled = scale(encode_image(Image.new("L", shape), "image/png"))

    assert {width: opened_webp(file).size for width, file in scaled.files.items()} == {
        width: (width, height) for width, height in sizes.items()
    }


@pytest.mark.parametrize("content_type", UPRIGHT_TYPES)
@pytest.mark.parametrize("orientation", range(1, 9))
def test_sizes_are_upright_however_the_camera_was_held(content_type: str, orientation: int) -> None:
    noted = Image.Exif()
    noted[0x0112] = orientation
    _, checked = check_photo(encode_image(quarters(600, 400), content_type, exif=noted))
    with Image.open(io.BytesIO(checked)) as image:
        upright = ImageOps.exif_transpose(image)

    scaled = scale(checked)

    assert (scaled.width, scaled.height) == upright.size
    for width, file in scaled.files.items():
        image = opened_webp(file)
        assert image.size == (width, round(upright.height * width / upright.width))
        assert all(map(close, corners(image), corners(upright)))


@pytest.mark.parametrize("content_type", ["image/gif", "image/webp", "image/png"])
def test_the_sizes_of_an_animation_show_its_first_frame(content_type: str) -> None:
    first, second = Image.new("RGB", (600, 400), "red"), Image.new("RGB", (600, 400), "blue")

    scaled = scale(encode_image(first, content_type, save_all=True, append_images=[second], duration=100))

    assert [*scaled.files] == [480, 600]
    for file in scaled.files.values():
        assert close(opened_webp(file).convert("RGB").getpixel((100, 100)), (255, 0, 0))


@pytest.mark.parametrize("content_type", ["image/png", "image/webp", "image/gif"])
def test_the_sizes_of_a_transparent_picture_are_transparent(content_type: str) -> None:
    image = Image.new("RGBA", (600, 400), (255, 0, 0, 255))
    image.paste((0, 0, 0, 0), (0, 0, 300, 400))

    smallest = opened_webp(scale(encode_image(image, content_type)).files[480]).convert("RGBA")

    left, right = smallest.getpixel((10, 10)), smallest.getpixel((470, 10))
    assert isinstance(left, tuple)
    assert left[3] == 0
    assert close(right, (255, 0, 0, 255))


@pytest.mark.parametrize(
    ("mode", "colour", "content_type"),
    [
        *(("L", 128, content_type) for content_type in TYPES),
        *[("LA", (128, 255), "image/png"), ("I;16", 128 * 256, "image/png"), ("P", 0, "image/png")],
        *[("1", 1, "image/png"), ("CMYK", (0, 0, 0, 127), "image/jpeg")],
    ],
)
def test_photos_of_every_kind_keep_their_colours(mode: str, colour: Any, content_type: str) -> None:
    image = Image.new(mode, (600, 400), colour)
    if mode == "P":
        image.putpalette([128, 128, 128])

    seen = opened_webp(scale(encode_image(image, content_type)).files[600]).convert("RGB").getpixel((10, 10))

    assert close(seen, (255,) * 3 if mode == "1" else (128,) * 3, 3)


def test_colours_look_the_same_without_their_profile() -> None:
    cms: Any = ImageCms
    usual: bytes = cms.ImageCmsProfile(cms.createProfile("sRGB")).tobytes()
    red_means_blue = usual.replace(b"rXYZ", b"----").replace(b"bXYZ", b"rXYZ").replace(b"----", b"bXYZ")

    for profile, colour in ((usual, (255, 0, 0)), (red_means_blue, (0, 0, 255))):
        for mode in ("RGB", "RGBA"):
            scaled = scale(encode_image(Image.new(mode, (600, 400), "red"), "image/png", icc_profile=profile))
            assert close(opened_webp(scaled.files[480]).convert("RGB").getpixel((10, 10)), colour)


@pytest.mark.parametrize("content_type", UPRIGHT_TYPES)
@pytest.mark.parametrize("mode", ["L", "RGB"])
def test_an_invalid_colour_profile_is_ignored(content_type: str, mode: str) -> None:
    image = Image.new(mode, (600, 400), "gray")

    scaled = scale(encode_image(image, content_type, icc_profile=b"what red means, and what green"))

    assert close(opened_webp(scaled.files[480]).convert("RGB").getpixel((10, 10)), (128, 128, 128), 3)


@every_type
@thoroughly
@given(data=st.data())
def test_a_damaged_file_is_scaled_or_refused_and_never_a_failure(content_type: str, data: st.DataObject) -> None:
    content = bytearray(animation(content_type) if content_type != "image/jpeg" else picture(content_type))
    for _ in range(data.draw(st.integers(1, 5))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    del content[data.draw(st.integers(len(content) // 2, len(content))) :]
    with contextlib.suppress(UnfitFile):
        for file in scale(bytes(content)).files.values():
            opened_webp(file)
