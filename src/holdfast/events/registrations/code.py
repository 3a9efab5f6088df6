"""The code of a registration: the address of the person's own page as a picture, for the entrance."""

import segno

MASK = 3
"""One of the eight patterns that a code may be laid out in. To compare all of them takes five times as long."""


def code(own_url: str) -> segno.QRCode:
    """The QR code of an own page. It can be read with 15 % of it missing."""
    return segno.make(own_url, error="m", micro=False, mask=MASK)
