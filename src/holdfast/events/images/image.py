"""Checks a photo: every pixel can be decoded, and there are not too many pixels.

`sandbox.py` runs this file as a program, in a process of its own. It reads a file and writes the photo.
"""

import contextlib
import io
import os
import sys
import warnings

from holdfast.events.images.container import MOST_PIXELS, TOO_LARGE, Unfit, stripped
from holdfast.kit.said import marked

MOST_MOVING_PIXELS = 200_000_000
"""The most pixels in all frames of an animation after the first; they take some seconds to decode."""

TOO_LONG = marked("moves too much: its frames have more than 200 million pixels together")

UNFIT = 65
"""The exit status with which a file is refused."""

MEMORY = 1 << 30
OUTPUT = 6_000_000
PROCESSOR_SECONDS = 10


def photo(content: bytes) -> tuple[str, bytes]:
    """The media type of a photo, and its file without metadata. Raises `Unfit`."""
    content_type, kept = stripped(content)
    _decode(kept, content_type.removeprefix("image/"))
    return content_type, kept


def _decode(content: bytes, format: str) -> None:
    """Decode every pixel of every frame. Raises `Unfit` if that fails."""
    from PIL import Image  # the service itself never loads a decoder

    Image.MAX_IMAGE_PIXELS = MOST_PIXELS
    try:
        with (
            warnings.catch_warnings(action="error", category=Image.DecompressionBombWarning),
            Image.open(io.BytesIO(content), formats=[format]) as image,
        ):
            frames: int = getattr(image, "n_frames", 1)
            if image.width * image.height * (frames - 1) > MOST_MOVING_PIXELS:
                raise Unfit(TOO_LONG)
            for number in range(frames):
                image.seek(number)
                image.load()
    except Unfit:
        raise
    except (Image.DecompressionBombError, Image.DecompressionBombWarning) as error:
        raise Unfit(TOO_LARGE) from error
    except Exception as error:  # a decoder may raise any exception for a damaged file
        raise Unfit(marked("is damaged")) from error


def main() -> None:
    """Read a file from standard input. Write its type, a line break and the photo, or the reason of the refusal."""
    confine()
    try:
        content_type, kept = photo(sys.stdin.buffer.read())
    except Unfit as reason:
        sys.stdout.buffer.write(str(reason).encode())
        sys.exit(UNFIT)
    sys.stdout.buffer.write(content_type.encode() + b"\n" + kept)


def confine() -> None:
    """Lower the priority of this process, and limit its processor time, its memory and the size of its output."""
    if sys.platform == "win32":
        return
    import resource

    os.nice(10)
    for limit, most in (
        (resource.RLIMIT_CPU, PROCESSOR_SECONDS),
        (resource.RLIMIT_AS, MEMORY),
        (resource.RLIMIT_FSIZE, OUTPUT),
        (resource.RLIMIT_CORE, 0),
    ):
        with contextlib.suppress(ValueError, OSError):  # some systems do not support every limit
            resource.setrlimit(limit, (most, most))


if __name__ == "__main__":
    main()
