"""Checks a photo: every pixel can be decoded, and there are not too many pixels.

`sandbox.py` runs this file as a program in a subprocess. It reads a file and writes the photo.
"""

import atexit
import contextlib
import io
import os
import sys
import time
import warnings

from holdfast.events.photos.container import MAX_PIXELS, TOO_LARGE, UnfitFile, strip_metadata
from holdfast.kit.contract.messages import translatable

MAX_ANIMATION_PIXELS = 100_000_000
"""The most pixels in all frames of an animation after the first; they take some seconds to decode. They are counted
from the headers of the frames, before any is decoded."""

TOO_LONG = translatable("moves too much: its frames have more than 100 million pixels together")

UNFIT_STATUS = 65
"""The exit status for a refused file."""

PROCESSOR_TIME = b"seconds of processor time: "
"""The beginning of the last line that a decoder writes to its standard error."""

MAX_MEMORY_BYTES = 1 << 30
MAX_OUTPUT_BYTES = 6_000_000
MAX_CPU_SECONDS = 10


def check_photo(content: bytes) -> tuple[str, bytes]:
    """The media type of a photo, and its file without metadata. Raises `UnfitFile`."""
    content_type, picture = strip_metadata(content)
    _decode(picture, content_type.removeprefix("image/"))
    return content_type, picture


def _decode(content: bytes, format: str) -> None:
    """Decode every pixel of every frame. Raises `UnfitFile` if that fails."""
    from PIL import Image  # the service itself never loads a decoder

    Image.MAX_IMAGE_PIXELS = MAX_PIXELS
    try:
        with (
            warnings.catch_warnings(action="error", category=Image.DecompressionBombWarning),
            Image.open(io.BytesIO(content), formats=[format]) as image,
        ):
            frames: int = getattr(image, "n_frames", 1)
            if image.width * image.height * (frames - 1) > MAX_ANIMATION_PIXELS:
                raise UnfitFile(TOO_LONG)
            for number in range(frames):
                image.seek(number)
                image.load()
    except UnfitFile:
        raise
    except (Image.DecompressionBombError, Image.DecompressionBombWarning) as error:
        raise UnfitFile(TOO_LARGE) from error
    except Exception as error:  # a decoder may raise any exception for a damaged file
        raise UnfitFile(translatable("is damaged")) from error


def main() -> None:
    """Read a file from standard input. Write its type, a line break and the photo, or the reason of the refusal."""
    limit_process()
    try:
        content_type, picture = check_photo(sys.stdin.buffer.read())
    except UnfitFile as reason:
        sys.stdout.buffer.write(str(reason).encode())
        sys.exit(UNFIT_STATUS)
    sys.stdout.buffer.write(content_type.encode() + b"\n" + picture)


def limit_process() -> None:
    """Lower the priority of this process, and limit its processor time, its memory and the size of its output.

    At its end it writes how much processor time it took.
    """
    atexit.register(lambda: sys.stderr.buffer.write(b"\n%s%f" % (PROCESSOR_TIME, time.process_time())))
    if sys.platform == "win32":
        return
    import resource

    os.nice(10)
    for limit, maximum in (
        (resource.RLIMIT_CPU, MAX_CPU_SECONDS),
        (resource.RLIMIT_AS, MAX_MEMORY_BYTES),
        (resource.RLIMIT_FSIZE, MAX_OUTPUT_BYTES),
        (resource.RLIMIT_CORE, 0),
    ):
        with contextlib.suppress(ValueError, OSError):  # some systems do not support every limit
            resource.setrlimit(limit, (maximum, maximum))


if __name__ == "__main__":
    main()
