"""The names that the programs of agents give themselves, such as `claude-ai`. Nobody has checked them.

Since 2026-07-28 each request may have one in `_meta`. Before, only `initialize` has one: its answer puts the name into
the session id, which clients repeat. So no state is kept between requests.
"""

import secrets
from base64 import urlsafe_b64decode, urlsafe_b64encode
from functools import lru_cache

import msgspec
from msgspec import MsgspecError, Raw, Struct, UnsetType

MAX_CHARACTERS = 64
"""The most characters of a name that are kept."""


class _ClientInfo(Struct):
    name: str


def client_name(info: Raw | UnsetType) -> str:
    """Return the name in a client's `clientInfo`; empty if it states none. Nothing is refused for its name."""
    if isinstance(info, UnsetType):
        return ""
    try:
        return _plain(msgspec.json.decode(info, type=_ClientInfo).name)
    except MsgspecError:
        return ""


def new_session_id(name: str) -> bytes:
    """Return a random session id with the name of a client."""
    encoded = urlsafe_b64encode(name.encode()).rstrip(b"=")
    return secrets.token_urlsafe(16).encode() + (b"." + encoded if encoded else b"")


def name_in_session_id(session_id: bytes) -> str:
    """Return the name in a session id, which may be made up; empty if there is none."""
    encoded = session_id.partition(b".")[2][: 8 * MAX_CHARACTERS]
    return _decoded(encoded) if encoded else ""


@lru_cache(1000)
def _decoded(encoded: bytes) -> str:
    """The name in a part of a session id. A client repeats it with each request."""
    try:
        return _plain(urlsafe_b64decode(encoded + b"=" * (-len(encoded) % 4)).decode())
    except ValueError:
        return ""


def _plain(name: str) -> str:
    """Return a name without line breaks and invisible characters, and not too long."""
    words = "".join(letter if letter.isprintable() else " " for letter in name[: 8 * MAX_CHARACTERS]).split()
    return " ".join(words)[:MAX_CHARACTERS].strip()
