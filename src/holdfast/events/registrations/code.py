"""The code of a registration, for the entrance: as a picture, and short enough to be read out.

The picture is the address of the person's own page. The short code follows from the link in it, but not the other way
round: whoever sees or hears it cannot open the page.
"""

import re
from hashlib import sha256
from typing import NamedTuple

import segno

MASK = 3
"""One of the eight patterns that a code may be laid out in. To compare all of them takes five times as long."""

DIGITS = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
"""Without I, L, O and U, which are taken for other characters, or make words of codes."""

PROOF = 6
"""Characters that prove a short code: a guess is right once in 2^30 times, and each has to be shown at the entrance."""

_ALIKE = str.maketrans("OIL", "011")
_TYPED = re.compile(f"([1-9A-HJKMNP-TV-Z][{DIGITS}]{{0,11}})([{DIGITS}]{{{PROOF}}})")


class Spoken(NamedTuple):
    """A short code, as it is compared.

    arrival    of the registration
    proof      what only somebody knows who has seen the code
    """

    arrival: int
    proof: str

    def __str__(self) -> str:
        """The code, as it is shown."""
        return f"{_written(self.arrival)}-{self.proof}"


def code(own_url: str) -> segno.QRCode:
    """The QR code of an own page. It can be read with 15 % of it missing."""
    return segno.make(own_url, error="m", micro=False, mask=MASK)


def spoken(link: str) -> Spoken:
    """The short code of the registration that a link names. The text is that of `links.write`."""
    bits = int.from_bytes(sha256(link.encode()).digest()[:4]) >> 2
    return Spoken(int(link.split("-")[2]), _written(bits).rjust(PROOF, DIGITS[0]))


def read_spoken(text: str) -> Spoken | None:
    """The short code that somebody typed: in any case, with or without its dash; None if it is none."""
    typed = _TYPED.fullmatch(re.sub(r"[\s-]", "", text).upper().translate(_ALIKE))
    if typed is None:
        return None
    arrival = 0
    for each in typed[1]:
        arrival = 32 * arrival + DIGITS.index(each)
    return Spoken(arrival, typed[2])


def _written(number: int) -> str:
    text = ""
    while number:
        number, digit = divmod(number, 32)
        text = DIGITS[digit] + text
    return text
