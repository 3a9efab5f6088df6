"""The code of a registration for check-in: a QR code, and a short code that can be read out.

The QR code holds the address of the person's own page. The short code is computed from the link in it, and does not
reveal the link: a person who sees or hears the short code cannot open the page.
"""

import re
import zlib
from functools import lru_cache
from hashlib import sha256
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
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

LENGTH_CACHE_SIZE = 8
"""Lengths of texts whose codes are kept, each as some 300 pictures of 2 kB. Links differ in length by their numbers."""

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


def qr_code(own_url: str) -> "segno.QRCode":
    """The QR code of a person's own page. It can be read with 15 % of it missing."""
    import segno  # takes 1 MB, and only the process that draws a code needs it

    return segno.make(own_url, error="m", micro=False, mask=MASK)


def qr_png(own_url: str) -> bytes:
    """The QR code as a PNG picture."""
    # The library has other modes for texts without small letters, and for some that are not ASCII.
    if own_url.isascii() and own_url != own_url.upper():
        return _png(*_codes_of_length(len(own_url)).pixels(own_url))
    return _png(*_drawn_pixels(own_url))


class _CodesOfLength:
    """The pixels of the QR codes of all texts of one length. The library draws some, and the others follow from these.

    Such codes have one version, one level and one mask, so each module is a sum of bits of the text over GF(2), plus a
    constant: the error correction and the mask are such sums too. So what a difference between two texts changes in the
    picture is the same for all texts. The differences that were seen are kept as a basis, by their highest bit. The
    library draws a text only if its difference from the first one is no sum of them. Texts that differ in 200 bits
    need 200 drawings; a sum takes a fiftieth of the time of one.
    """

    def __init__(self) -> None:
        self._first: int | None = None
        """The first text, followed by its pixels, as one number."""
        self._basis: dict[int, int] = {}
        """Differences of texts, followed by the differences of their pixels, by their length in bits."""
        self._pixel_bytes = 0
        self._width = 0

    def pixels(self, own_url: str) -> tuple[bytes, int]:
        """The pixels, as `_drawn_pixels` has them."""
        if self._first is None:
            pixels, self._width = _drawn_pixels(own_url)
            self._pixel_bytes = len(pixels)
            self._first = int.from_bytes(own_url.encode() + pixels)
            return pixels, self._width
        pixel_bits = 8 * self._pixel_bytes
        # The pixels of the first text, and what is still different between the texts.
        rest = self._first ^ (int.from_bytes(own_url.encode()) << pixel_bits)
        while (length := rest.bit_length()) > pixel_bits:
            difference = self._basis.get(length)
            if difference is None:
                pixels, _ = _drawn_pixels(own_url)
                self._basis[length] = rest ^ int.from_bytes(pixels)
                return pixels, self._width
            rest ^= difference
        return rest.to_bytes(self._pixel_bytes), self._width


@lru_cache(maxsize=LENGTH_CACHE_SIZE)
def _codes_of_length(length: int) -> _CodesOfLength:
    return _CodesOfLength()


def _drawn_pixels(own_url: str) -> tuple[bytes, int]:
    """One row of pixels for each row of modules, and how wide it is. 1 is white, as in a PNG of one bit a pixel."""
    modules = qr_code(own_url).matrix
    width = (len(modules) + 2 * BORDER) * SCALE
    pixels = {0: "1" * SCALE, 1: "0" * SCALE}
    border, padding = "1" * (BORDER * SCALE), "0" * (-width % 8)
    rows = (border + row.decode().translate(pixels) + border + padding for row in modules)
    return b"".join(int(row, 2).to_bytes(len(row) // 8) for row in rows), width


def _png(pixels: bytes, width: int) -> bytes:
    """A picture. The library's own takes longer than the code itself: it writes pixel by pixel."""
    bytes_of_row = (width + 7) // 8
    # Each row begins with the number of its filter: 0 for none; 2 for the difference from the row above.
    repeated = (b"\2" + b"\0" * bytes_of_row) * (SCALE - 1)
    margin = b"\0" + int("1" * width + "0" * (-width % 8), 2).to_bytes(bytes_of_row)
    margin += (b"\2" + b"\0" * bytes_of_row) * (BORDER * SCALE - 1)
    rows = [b"\0" + pixels[start : start + bytes_of_row] + repeated for start in range(0, len(pixels), bytes_of_row)]
    header = width.to_bytes(4) * 2 + bytes([1, 0, 0, 0, 0])
    chunks = ((b"IHDR", header), (b"IDAT", zlib.compress(margin + b"".join(rows) + margin)), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        len(content).to_bytes(4) + name + content + zlib.crc32(name + content).to_bytes(4) for name, content in chunks
    )


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
