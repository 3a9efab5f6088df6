"""Which clients take compressed answers."""

import re
from functools import lru_cache


@lru_cache(256)
def accepts_gzip(header: bytes) -> bool:
    """Return whether gzip is among the encodings of an `Accept-Encoding` header, and not with `q=0`."""
    for choice in header.decode("latin-1").lower().split(","):
        coding, _, weight = choice.partition(";")
        if coding.strip() in {"gzip", "*"}:
            return not re.fullmatch(r"\s*q\s*=\s*0(\.0*)?\s*", weight)
    return False
