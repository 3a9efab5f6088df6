"""API keys of organizers and admins."""

from datetime import datetime
from typing import Annotated

from msgspec import Meta, Struct

from holdfast.events.paths import KeyId
from holdfast.kit.contract.command import Command, Id, NotBlank, Timestamp


class ListKeys(Command):
    """No options: every active key is listed."""


class CreateKey(Command):
    name: Annotated[NotBlank, Meta(min_length=1, max_length=100, description="What the key is for.")]
    user_id: Annotated[Id | None, Meta(description="Required for admin keys; else yours.")] = None


class RevokeKey(Command):
    id: KeyId


class ApiKey(Struct):
    """An API key. The whole secret is shown once, when the key is created."""

    id: int
    name: str
    key: Annotated[str, Meta(description="Whole on creation; later its first 8 characters, masked.")]
    active: bool
    inserted_at: Timestamp
    user_id: Annotated[int | None, Meta(description="null for an admin key.")]


class KeyUse(Struct):
    """The last use of a key. It is stored at most once an hour. None: no use is stored."""

    id: int
    used_at: datetime | None


class CallerKey(Struct):
    """The key of a caller, by its hash. `limit_id`: of its daily limit; None: it has none."""

    hash: bytes
    id: int
    user_id: int | None
    owner_verified: bool
    limit_id: int | None
    asks_first: bool


class KeyRow(Struct):
    """A key as it is stored."""

    id: int
    name: str
    start: str
    active: bool
    inserted_at: datetime
    user_id: int | None
    hash: bytes
