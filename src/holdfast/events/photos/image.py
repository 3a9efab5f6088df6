"""What a photo must be: whole to the last pixel, and of a size that can be shown.

Run as a program it reads a file and writes the photo: `sandbox.py` does so, in a process of its own.
"""

import contextlib
import io
import os
import sys
import warnings

from holdfast.events.photos.container import MOST_PIXELS, TOO_LARGE, Unfit, stripped

MOST_MOVING_PIXELS = 200_000_000
"""In the frames of an animation after its first: some seconds of decoding."""

TOO_LONG = f"moves too much: its frames have more than {MOST_MOVING_PIXELS // 1_000_000} million pixels together"

UNFIT = 65
"""The exit status with which a file is refused."""

MEMORY = 1 << 30
OUTPUT = 6_000_000
PROCESSOR_SECONDS = 10


def photo(content: bytes) -> tuple[str, bytes]:
    """The media type of a photo, and its file without what is not the picture. Raises `Unfit`."""
    content_type, kept = stripped(content)
    _decode(kept, content_type.removeprefix("image/"))
    return content_type, kept


def _decode(content: bytes, format: str) -> None:
    """Decode every pixel of every frame, to see that they are there."""
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
    except Exception as error:  # a decoder may fail in any way it likes
        raise Unfit("is damaged") from error


def main() -> None:
    """From standard input to standard output: the type, a line break, the file; or why it is refused."""
    confine()
    try:
        content_type, kept = photo(sys.stdin.buffer.read())
    except Unfit as reason:
        sys.stdout.buffer.write(str(reason).encode())
        sys.exit(UNFIT)
    sys.stdout.buffer.write(content_type.encode() + b"\n" + kept)


def confine() -> None:
    """Give away what looking at a file does not need: the right of way, much time and memory, writing at length."""
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
        with contextlib.suppress(ValueError, OSError):  # not every system has every limit
            resource.setrlimit(limit, (most, most))


if __name__ == "__main__":
    main()
