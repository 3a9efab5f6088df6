"""Forms that are done once, also if they are sent twice: by a second click, or by loading their answer again."""

import hashlib
import re
import secrets
from collections.abc import Mapping
from typing import Any, TypeVar

import msgspec
from msgspec import Raw, Struct

from holdfast.kit.caller import Caller
from holdfast.kit.command import Command
from holdfast.kit.problems import BAD_REQUEST
from holdfast.kit.runner import Run

A = TypeVar("A", bound=Struct)

_SHAPE = re.compile(r"[A-Za-z0-9_-]{22}")


def new() -> str:
    """The value of the hidden field `once` in a form."""
    return secrets.token_urlsafe(16)


async def run(work: Run, caller: Caller, command: Command, fields: Mapping[str, str], kind: type[A]) -> A:
    """Do what a form asks for; if it was done before, return the answer that it had then."""
    answer: Any = await work(caller, command, _key(fields))
    return msgspec.json.decode(answer, type=kind) if isinstance(answer, Raw) else answer


def _key(fields: Mapping[str, str]) -> str:
    """The idempotency key of a form. A form that was changed after it was sent has another key."""
    once = fields.get("once", "")
    if not _SHAPE.fullmatch(once):
        raise BAD_REQUEST("The form is not complete.", hint="Open the page again and send its form.")
    said = repr(sorted(fields.items()))
    return f"{once}-{hashlib.sha256(said.encode()).hexdigest()}"
