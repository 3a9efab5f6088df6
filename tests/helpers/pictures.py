"""Pictures to upload, made on the spot."""

import io
import random
import struct
import warnings
import zipfile
import zlib
from typing import Any

from PIL import Image

TYPES = {"image/jpeg": "JPEG", "image/png": "PNG", "image/webp": "WEBP", "image/gif": "GIF"}


def picture(content_type: str = "image/jpeg", width: int = 40, height: int = 30, **options: Any) -> bytes:
    """A file that shows noise; `options` are those of the encoder."""
    return encode_image(noise("RGB", width, height), content_type, **options)


def animation(content_type: str, frames: int = 3, width: int = 40, height: int = 30, **options: Any) -> bytes:
    """A file that moves."""
    first, *others = [noise("RGB", width, height, number) for number in range(frames)]
    return encode_image(first, content_type, save_all=True, append_images=others, **options)


def noise(mode: str, width: int, height: int, seed: int = 0) -> Image.Image:
    return Image.frombytes(mode, (width, height), random.Random(seed).randbytes(width * height * len(mode)))


def encode_image(image: Image.Image, content_type: str, **options: Any) -> bytes:
    file = io.BytesIO()
    image.save(file, TYPES[content_type], **options)
    return file.getvalue()


def frames(content: bytes) -> list[tuple[bytes, Any]]:
    """The pixels of each frame of a file, and how long it is shown."""
    with warnings.catch_warnings(action="ignore"), Image.open(io.BytesIO(content)) as image:
        frames_of_image: list[tuple[bytes, Any]] = []
        for number in range(getattr(image, "n_frames", 1)):
            image.seek(number)
            frames_of_image.append((image.convert("RGBA").tobytes(), image.info.get("duration")))
        return frames_of_image


def png_chunk(kind: bytes, content: bytes) -> bytes:
    """A part of a PNG file."""
    return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))


def riff(*chunks: tuple[bytes, bytes]) -> bytes:
    """A WebP file of these parts."""
    body = b"".join(kind + struct.pack("<I", len(data)) + data + b"\0" * (len(data) % 2) for kind, data in chunks)
    return b"RIFF" + struct.pack("<I", len(body) + 4) + b"WEBP" + body


def zip_archive() -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("evil.html", "<script>alert(1)</script>")
    return file.getvalue()


def jpeg_segment(kind: int, content: bytes) -> bytes:
    return bytes((0xFF, kind)) + struct.pack(">H", len(content) + 2) + content
