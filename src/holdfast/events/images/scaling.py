"""Makes the sizes of a photo: WebP files of its first frame, upright, in sRGB.

`sandbox.py` runs this file as a program, in a process of its own. It reads a photo and writes its sizes.
"""

import io
import sys
import warnings
from typing import Any, NamedTuple

from holdfast.events.images.container import MOST_PIXELS, Unfit
from holdfast.events.images.image import UNFIT, confine
from holdfast.kit.said import marked

SLOTS = (480, 960, 1920)
"""The widths of sizes. A photo narrower than the widest slots gets one size of its own width instead of them."""

TALLEST = 16_383
"""The greatest height of a WebP file."""

QUALITY = 80

SIDEWAYS = range(5, 9)
"""The EXIF orientations in which the width of a photo is stored as its height."""


class Scaled(NamedTuple):
    """The width and height of a photo as it is shown, and the files of its sizes by their widths."""

    width: int
    height: int
    files: dict[int, bytes]


def widths_of(width: int, height: int) -> list[int]:
    """The widths of the sizes of a photo, ascending: at least one, and none is greater than the photo's."""
    widest = max(1, min(width, width * TALLEST // height))
    return sorted({min(slot, widest) for slot in SLOTS})


def scaled(content: bytes) -> Scaled:
    """The sizes of a photo. Raises `Unfit`."""
    from PIL import Image  # the service itself never loads a decoder

    Image.MAX_IMAGE_PIXELS = MOST_PIXELS
    try:
        with warnings.catch_warnings(action="error", category=Image.DecompressionBombWarning):
            return _scaled(content)
    except Exception as error:  # a decoder may raise any exception for a damaged file
        raise Unfit(marked("cannot be scaled")) from error


def _scaled(content: bytes) -> Scaled:
    from PIL import ExifTags, Image, ImageOps

    opened: Any = Image.open(io.BytesIO(content))  # the types of Pillow are complete only with numpy
    with opened as image:
        sideways = image.getexif().get(ExifTags.Base.Orientation) in SIDEWAYS
        width, height = image.size[::-1] if sideways else image.size

        def shape(scaled: int) -> tuple[int, int]:
            return scaled, max(1, min(TALLEST, round(height * scaled / width)))

        widths = widths_of(width, height)
        widest = shape(widths[-1])
        stored = widest[::-1] if sideways else widest
        image.draft(None, stored)  # JPEG files are decoded at about the size that is needed
        # The picture is turned and its colours are converted when it is small already, which saves time and memory.
        small = _with_known_colours(image).resize(stored, Image.Resampling.LANCZOS, reducing_gap=3)
        upright = _in_srgb(ImageOps.exif_transpose(small))
    files = {each: _encoded(upright.resize(shape(each), Image.Resampling.LANCZOS)) for each in widths}
    return Scaled(width, height, files)


def _with_known_colours(image: Any) -> Any:
    """An image in the mode L, RGB, RGBA or CMYK."""
    if image.mode.startswith("I"):
        return image.point(_high_byte).convert("L")  # of 16 bits, Pillow would take everything above 255 for white
    if image.has_transparency_data:
        return image.convert("RGBA")
    if image.mode == "1":
        return image.convert("L")
    return image if image.mode in {"L", "RGB", "CMYK"} else image.convert("RGB")


def _high_byte(value: Any) -> Any:
    return value * (1 / 256)


def _in_srgb(image: Any) -> Any:
    """An image in the colours that every screen shows. A profile that is damaged or of another mode is ignored."""
    from PIL import ImageCms

    cms: Any = ImageCms
    mode = "RGBA" if image.mode == "RGBA" else "RGB"
    if profile := image.info.get("icc_profile"):
        try:
            found = cms.ImageCmsProfile(io.BytesIO(profile))
            return cms.profileToProfile(image, found, cms.createProfile("sRGB"), outputMode=mode)
        except (ImageCms.PyCMSError, OSError):
            pass
    return image.convert(mode)


def _encoded(image: Any) -> bytes:
    file = io.BytesIO()
    image.save(file, "WEBP", quality=QUALITY)
    return file.getvalue()


def main() -> None:
    """Read a photo from standard input. Write a line of numbers and the files of the sizes, or why it is refused.

    The numbers are the photo's width and height, and the lengths of the files.
    """
    confine()
    try:
        found = scaled(sys.stdin.buffer.read())
    except Unfit as reason:
        sys.stdout.buffer.write(str(reason).encode())
        sys.exit(UNFIT)
    numbers = (found.width, found.height, *map(len, found.files.values()))
    sys.stdout.buffer.write(" ".join(map(str, numbers)).encode() + b"\n" + b"".join(found.files.values()))


if __name__ == "__main__":
    main()
