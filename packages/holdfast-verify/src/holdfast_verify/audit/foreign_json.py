"""Decodes JSON that a stranger wrote. Whatever it is, the only error is `ValueError`."""

from typing import Any

import msgspec


def decode_foreign(content: bytes | str, type: Any = Any) -> Any:
    """The value of a JSON text as a type. Raises `ValueError`, also for bytes that are no text, and deep nesting."""
    try:
        return msgspec.json.decode(content, type=type)
    except RecursionError:
        raise ValueError("its values are nested too deep") from None
