"""Forms whose work runs once even if they are sent twice: by a second click, or by reloading the answer."""

import hashlib
import re
import secrets
from collections.abc import Mapping
from typing import Any, TypeVar

import msgspec
from msgspec import Raw, Struct

from holdfast.kit.contract.caller import Caller
from holdfast.kit.contract.command import Command
from holdfast.kit.contract.problems import BAD_REQUEST
from holdfast.kit.running.runner import Run

S = TypeVar("S", bound=Struct)

_SHAPE = re.compile(r"[A-Za-z0-9_-]{22}")


def new_token() -> str:
    """A new value for the hidden field `once` of a form."""
    return secrets.token_urlsafe(16)


async def run_once(work: Run, caller: Caller, command: Command, fields: Mapping[str, str], kind: type[S]) -> S:
    """Run the work of a form. If it ran before, return its first answer."""
    answer: Any = await work(caller, command, _key(fields))
    return msgspec.json.decode(answer, type=kind) if isinstance(answer, Raw) else answer


def _key(fields: Mapping[str, str]) -> str:
    """The idempotency key of a form. A form that is changed and sent again has another key."""
    once = fields.get("once", "")
    if not _SHAPE.fullmatch(once):
        raise BAD_REQUEST("The form is not complete.", hint="Open the page again and send its form.")
    content = repr(sorted(fields.items()))
    return f"{once}-{hashlib.sha256(content.encode()).hexdigest()}"
