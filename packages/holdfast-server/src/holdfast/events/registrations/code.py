"""The code of a registration for check-in: a QR code, and a short code that can be read out.

The QR code holds the address of the person's own page. The short code is computed from the link in it, and does not
reveal the link: a person who sees or hears the short code cannot open the page.
"""

import re
import zlib
from hashlib import sha256
from typing import NamedTuple

import segno

MASK = 3
"""One of the eight patterns of a QR code. Comparing all of them takes five times as long."""

DIGITS = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
"""Without I, L, O and U, which readers confuse with other characters, or which turn codes into words."""

PROOF_LENGTH = 6
"""Characters that prove a short code: a guess is right once in 2^30 times, and each guess needs a check-in attempt."""

SCALE = 5
"""Pixels of a module of the picture: it stays sharp where mail programs draw it larger."""

BORDER = 4
"""Modules of white around a code (ISO/IEC 18004, section 6.3.8)."""

_LOOKALIKES = str.maketrans("OIL", "011")
_SHORT_CODE = re.compile(f"([1-9A-HJKMNP-TV-Z][{DIGITS}]{{0,11}})([{DIGITS}]{{{PROOF_LENGTH}}})")


class ShortCode(NamedTuple):
    """A short code.

    arrival    the arrival number of the registration
    proof      characters that only a person who has seen the code knows
    """

    arrival: int
    proof: str

    def __str__(self) -> str:
        """The code as pages show it."""
        return f"{_base32(self.arrival)}-{self.proof}"


def qr_code(own_url: str) -> segno.QRCode:
    """The QR code of a person's own page. It can be read with 15 % of it missing."""
    return segno.make(own_url, error="m", micro=False, mask=MASK)


def qr_png(own_url: str) -> bytes:
    """The QR code as a PNG picture. The library's own takes longer than the code itself: it writes pixel by pixel."""
    modules = qr_code(own_url).matrix
    width = (len(modules) + 2 * BORDER) * SCALE
    # In a PNG of one bit a pixel, 1 is white. Each row begins with the number of its filter, which is 0 for none.
    pixels = {0: "1" * SCALE, 1: "0" * SCALE}
    border, padding = "1" * (BORDER * SCALE), "0" * (-width % 8)
    margin = _packed("1" * width + padding) * (BORDER * SCALE)
    rows = [_packed(border + row.decode().translate(pixels) + border + padding) * SCALE for row in modules]
    header = width.to_bytes(4) * 2 + bytes([1, 0, 0, 0, 0])
    chunks = ((b"IHDR", header), (b"IDAT", zlib.compress(margin + b"".join(rows) + margin)), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        len(content).to_bytes(4) + name + content + zlib.crc32(name + content).to_bytes(4) for name, content in chunks
    )


def _packed(bits: str) -> bytes:
    """A row of pixels without a filter."""
    return b"\0" + int(bits, 2).to_bytes(len(bits) // 8)


def short_code(link: str) -> ShortCode:
    """The short code of the registration that a link names. `link` is a text that `links.write` returned."""
    bits = int.from_bytes(sha256(link.encode()).digest()[:4]) >> 2
    return ShortCode(int(link.split("-")[2]), _base32(bits).rjust(PROOF_LENGTH, DIGITS[0]))


def parse_short_code(text: str) -> ShortCode | None:
    """The short code in a typed text: in any case, with or without its dash; None if the text is not a short code."""
    typed = _SHORT_CODE.fullmatch(re.sub(r"[\s-]", "", text).upper().translate(_LOOKALIKES))
    if typed is None:
        return None
    arrival = 0
    for digit in typed[1]:
        arrival = 32 * arrival + DIGITS.index(digit)
    return ShortCode(arrival, typed[2])


def _base32(number: int) -> str:
    text = ""
    while number:
        number, digit = divmod(number, 32)
        text = DIGITS[digit] + text
    return text
