"""Makes the sizes of a photo: WebP files of its first frame, upright, in sRGB.

`sandbox.py` runs this file as a program in a subprocess. It reads a photo and writes its sizes.
"""

import io
import sys
import warnings
from typing import Any, NamedTuple

from holdfast.events.photos.container import MAX_PIXELS, UnfitFile
from holdfast.events.photos.image import UNFIT_STATUS, limit_process
from holdfast.kit.contract.messages import translatable

SIZE_WIDTHS = (480, 960, 1920)
"""The widths of sizes. A photo narrower than some of them gets one size of its own width instead of these."""

MAX_HEIGHT = 16_383
"""The greatest height of a WebP file."""

QUALITY = 80

SIDEWAYS_ORIENTATIONS = range(5, 9)
"""The EXIF orientations in which the width of a photo is stored as its height."""


class ScaledPhoto(NamedTuple):
    """The displayed width and height of a photo, and the files of its sizes by their widths."""

    width: int
    height: int
    files: dict[int, bytes]


def widths_of(width: int, height: int) -> list[int]:
    """The widths of the sizes of a photo, ascending: at least one, and none greater than the width of the photo."""
    widest = max(1, min(width, width * MAX_HEIGHT // height))
    return sorted({min(slot, widest) for slot in SIZE_WIDTHS})


def scale(content: bytes) -> ScaledPhoto:
    """The sizes of a photo. Raises `UnfitFile`."""
    from PIL import Image  # the service itself never loads a decoder

    Image.MAX_IMAGE_PIXELS = MAX_PIXELS
    try:
        with warnings.catch_warnings(action="error", category=Image.DecompressionBombWarning):
            return _decode_and_scale(content)
    except Exception as error:  # a decoder may raise any exception for a damaged file
        raise UnfitFile(translatable("cannot be scaled")) from error


def _decode_and_scale(content: bytes) -> ScaledPhoto:
    from PIL import ExifTags, Image, ImageOps

    image_file: Any = Image.open(io.BytesIO(content))  # the types of Pillow are complete only with numpy
    with image_file as image:
        sideways = image.getexif().get(ExifTags.Base.Orientation) in SIDEWAYS_ORIENTATIONS
        width, height = image.size[::-1] if sideways else image.size

        def shape(scaled_width: int) -> tuple[int, int]:
            return scaled_width, max(1, min(MAX_HEIGHT, round(height * scaled_width / width)))

        widths = widths_of(width, height)
        widest = shape(widths[-1])
        stored_shape = widest[::-1] if sideways else widest
        image.draft(None, stored_shape)  # JPEG files are decoded at about the needed size
        # The picture is turned and its colours are converted after it is made small, which saves time and memory.
        small = _with_known_colours(image).resize(stored_shape, Image.Resampling.LANCZOS, reducing_gap=3)
        upright = _in_srgb(ImageOps.exif_transpose(small))
    files = {size_width: _encode(upright.resize(shape(size_width), Image.Resampling.LANCZOS)) for size_width in widths}
    return ScaledPhoto(width, height, files)


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
    """An image in the sRGB colours. A colour profile that is damaged or of another mode is ignored."""
    from PIL import ImageCms

    cms: Any = ImageCms
    mode = "RGBA" if image.mode == "RGBA" else "RGB"
    if profile := image.info.get("icc_profile"):
        try:
            embedded_profile = cms.ImageCmsProfile(io.BytesIO(profile))
            return cms.profileToProfile(image, embedded_profile, cms.createProfile("sRGB"), outputMode=mode)
        except (ImageCms.PyCMSError, OSError):
            pass
    return image.convert(mode)


def _encode(image: Any) -> bytes:
    file = io.BytesIO()
    image.save(file, "WEBP", quality=QUALITY)
    return file.getvalue()


def main() -> None:
    """Read a photo from standard input. Write a line of numbers and the files of the sizes, or the refusal's reason.

    The numbers are the photo's width and height, and the lengths of the files.
    """
    limit_process()
    try:
        sizes = scale(sys.stdin.buffer.read())
    except UnfitFile as reason:
        sys.stdout.buffer.write(str(reason).encode())
        sys.exit(UNFIT_STATUS)
    numbers = (sizes.width, sizes.height, *map(len, sizes.files.values()))
    sys.stdout.buffer.write(" ".join(map(str, numbers)).encode() + b"\n" + b"".join(sizes.files.values()))


if __name__ == "__main__":
    main()
