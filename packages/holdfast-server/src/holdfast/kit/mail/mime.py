"""Parts of mails as bytes (RFC 2045, 2046 and 2387).

The standard library builds a tree of headers, and parses and folds each of them again: that takes milliseconds a mail.
Here a part is its bytes. `headers.py` encodes what headers contain.
"""

import base64
import binascii
import re
from collections.abc import Sequence

_LINE_ENDS = re.compile("\r\n|\r|\n")


def text(content: str, subtype: str) -> bytes:
    """A part with text, quoted-printable. Its last line has an end. `subtype`: `plain` or `html`."""
    lines = _LINE_ENDS.sub("\r\n", content).removesuffix("\r\n") + "\r\n"
    head = f'Content-Type: text/{subtype}; charset="utf-8"\r\nContent-Transfer-Encoding: quoted-printable\r\n\r\n'
    return head.encode("ascii") + binascii.b2a_qp(lines.encode())


def file(content: bytes, content_type: str, disposition: str, *, content_id: str = "") -> bytes:
    """A part with a file, in Base64.

    content_type    its media type with the parameters
    disposition     the value of Content-Disposition
    content_id      the id by which the HTML refers to it, without angle brackets; empty: it has none
    """
    head = (
        f"Content-Type: {content_type}\r\nContent-Transfer-Encoding: base64\r\nContent-Disposition: {disposition}\r\n"
    )
    if content_id:
        head += f"Content-ID: <{content_id}>\r\n"
    return head.encode("ascii") + b"\r\n" + base64.encodebytes(content).replace(b"\n", b"\r\n")


def multipart(subtype: str, parts: Sequence[bytes], *, type: str = "") -> bytes:
    """Several parts as one. No part contains another one of the same subtype.

    type    the media type of the first part: `multipart/related` needs it

    No text can contain the boundary: `=` is never followed by another one in quoted-printable text, and Base64 has no
    hyphen. So it is the same in each mail, and a mail has the same bytes at each attempt.
    """
    boundary = f"=={subtype}=="
    parameter = f'; type="{type}"' if type else ""
    head = f'Content-Type: multipart/{subtype}; boundary="{boundary}"{parameter}\r\n\r\n'
    delimiter = f"--{boundary}\r\n".encode()
    return head.encode() + b"".join(delimiter + part + b"\r\n" for part in parts) + f"--{boundary}--\r\n".encode()
