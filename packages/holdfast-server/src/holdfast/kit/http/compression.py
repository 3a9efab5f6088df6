"""Which clients take compressed answers."""

import re
from functools import lru_cache


@lru_cache(256)
def accepts_gzip(header: bytes) -> bool:
    """Return whether an `Accept-Encoding` header accepts gzip: by its name, or else by `*`, and not with `q=0`."""
    weights: dict[str, str] = {}
    for choice in header.decode("latin-1").lower().split(","):
        coding, _, weight = choice.partition(";")
        weights[coding.strip()] = weight
    weight = weights.get("gzip", weights.get("*"))
    return weight is not None and not re.fullmatch(r"\s*q\s*=\s*0(\.0*)?\s*", weight)
