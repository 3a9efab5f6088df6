"""The operations on API keys."""

from collections.abc import Mapping, Sequence
from typing import Any, LiteralString

from holdfast.accounts import sessions
from holdfast.accounts.agents.limits import KEY_ASKS_FIRST, LIMIT_OF_KEY, LimitOperations, refuse_agent_with_limit
from holdfast.events.keys.model import ApiKey, CallerKey, CreateKey, KeyRow, KeyUse, ListKeys, RevokeKey
from holdfast.events.oauth_server import grants
from holdfast.events.problems import QUOTA_EXCEEDED
from holdfast.events.resources import Reader, Tx
from holdfast.events.users.quotas import require_quota
from holdfast.kit.contract.caller import Caller, api_key
from holdfast.kit.contract.messages import message
from holdfast.kit.contract.problems import (
    FORBIDDEN,
    INVALID_API_KEY,
    NOT_FOUND,
    VALIDATION_FAILED,
    Problem,
    invalid,
    refuses,
)
from holdfast.kit.postgres import database
from holdfast.kit.security import api_keys

KEY_LIMITS = LimitOperations("user_id", "api_keys.name")
"""The operations on the daily limits of keys and apps."""

VISIBLE_CHARACTERS = 8
"""Characters of a key that remain visible in lists."""


async def find_callers(reader: database.Reader[Any], hashes: Sequence[bytes]) -> Mapping[bytes, Caller | Problem]:
    """The callers of the hashes of active keys; a problem for keys that ended because their owner was verified.

    Stores the use of a key once an hour, and later if another transaction has locked the key.
    """
    keys = await reader.rows(
        CallerKey,
        f"""
        with used_key as (
            update api_keys set used_at = now()
             where id = any(array(select id from api_keys
                                   where hash = any(%(hashes)s) and active
                                     and (used_at is null or used_at < now() - interval '1 hour')
                                     for no key update skip locked)))
        select hash, id, user_id, owner_verified, {LIMIT_OF_KEY} as limit_id, {KEY_ASKS_FIRST} as asks_first
          from api_keys
         where hash = any(%(hashes)s) and (active or owner_verified)
        """,
        {"hashes": [*hashes]},
    )
    return {
        key.hash: _ended_key()
        if key.owner_verified
        else api_key(key.id, key.user_id, limit_id=key.limit_id, asks_first=key.asks_first)
        for key in keys
    }


def _ended_key() -> Problem:
    return INVALID_API_KEY(
        "This API key ended when the owner of the organizer's e-mail address was verified.",
        hint="Make a new key with create_api_key, as the person who owns the address.",
    )


async def list(reader: Reader, caller: Caller, command: ListKeys) -> Sequence[ApiKey]:
    """List active API keys, each with its first 8 characters."""
    return [_api_key(row, mask(row.start)) for row in await list_active_keys(reader, caller.tenant_id)]


async def list_uses(reader: Reader, caller: Caller, command: ListKeys) -> Sequence[KeyUse]:
    """List the last use of each active key of an organizer."""
    return await reader.rows(
        KeyUse, "select id, used_at from api_keys where active and user_id = %(user_id)s", {"user_id": caller.tenant}
    )


@refuses(INVALID_API_KEY, FORBIDDEN, VALIDATION_FAILED, QUOTA_EXCEEDED)
async def create(tx: Tx, caller: Caller, command: CreateKey) -> ApiKey:
    """Create an API key; the answer shows its secret, once."""
    refuse_agent_with_limit(caller, "create API keys")
    organizer_id = await _owner(tx, caller, command.user_id)
    limit = tx.resources.settings.keys_per_organizer
    await require_quota(tx, organizer_id, message("active API keys"), limit, COUNT)
    await _require_active(tx, caller)
    return await insert_key(tx, organizer_id, command.name)


async def _owner(tx: Tx, caller: Caller, user_id: int | None) -> int:
    """The organizer a new key acts for."""
    if caller.tenant_id is not None:
        if user_id not in (None, caller.tenant_id):
            raise FORBIDDEN("An organizer key creates keys for its own organizer only.")
        return caller.tenant_id
    if user_id is None:
        raise invalid({"user_id": [message("is required with an admin key")]})
    if not await is_organizer(tx, user_id):
        raise invalid({"user_id": [message("no organizer has this id")]})
    return user_id


@refuses(NOT_FOUND, FORBIDDEN)
async def revoke(tx: Tx, caller: Caller, command: RevokeKey) -> None:
    """Revoke an API key, at once and for good.

    An organizer key revokes only its own.
    """
    row = await find_key(tx, command.id)
    if row is None:
        raise NOT_FOUND(f"No API key has the id {command.id}.")
    if not caller.is_admin and row.user_id != caller.tenant_id:
        raise FORBIDDEN("The API key belongs to another organizer.")
    await deactivate_key(tx, command.id)
    await tx.revoke(api_keys.CHANNEL, row.hash.hex())


async def end_all(tx: Tx, organizer_id: int, *, owner_verified: bool) -> int:
    """End every key of an organizer. Returns the number of ended keys.

    owner_verified    whether the reason is that the owner of its address was verified; users of the keys are told so
    """
    ended_count = await end_keys(tx, organizer_id, owner_verified=owner_verified)
    await tx.revoke(api_keys.CHANNEL)
    return ended_count


async def _require_active(tx: Tx, caller: Caller) -> None:
    """Check the caller again under the lock: an ended key, session or app must not create a key."""
    match caller.principal:
        case "api_key" if not await is_active(tx, caller.id):
            raise INVALID_API_KEY()
        case "person" if not await sessions.lock_if_exists(tx, caller.id):
            raise FORBIDDEN("You are signed out.", hint="Sign in again.")
        case "access_token" if caller.id and not await grants.is_open(tx, caller.id):
            raise FORBIDDEN("The app is disconnected.", hint="Connect it again.")
        case _:
            pass


async def insert_key(tx: Tx, user_id: int | None, name: str) -> ApiKey:
    """Create a key for an organizer, or for an admin with None. Only its hash is stored."""
    secret = api_keys.new_key()
    row = await _insert_row(tx, user_id, name, secret[:VISIBLE_CHARACTERS], api_keys.digest(secret))
    return _api_key(row, secret)


def _api_key(row: KeyRow, key: str) -> ApiKey:
    return ApiKey(row.id, row.name, key, row.active, row.inserted_at, row.user_id)


def mask(start: str) -> str:
    """A key as lists show it: its first 8 characters, then stars."""
    return f"{start}{'*' * 8}"


COUNT: LiteralString = "select count(*) from api_keys where user_id = %(organizer_id)s and active"


async def list_active_keys(reader: Reader, user_id: int | None) -> Sequence[KeyRow]:
    """The active keys of one user, or all active keys with None."""
    theirs: LiteralString = "" if user_id is None else "and user_id = %(user_id)s"
    return await reader.rows(
        KeyRow,
        f"""
        select id, name, start, active, inserted_at, user_id, hash from api_keys where active {theirs} order by id
        """,
        {"user_id": user_id},
    )


async def find_key(tx: Tx, id: int) -> KeyRow | None:
    return await tx.row(
        KeyRow,
        "select id, name, start, active, inserted_at, user_id, hash from api_keys where id = %(id)s for update",
        {"id": id},
    )


async def _insert_row(tx: Tx, user_id: int | None, name: str, start: str, hash: bytes) -> KeyRow:
    row = await tx.row(
        KeyRow,
        """
        insert into api_keys (user_id, name, start, hash) values (%(user_id)s, %(name)s, %(start)s, %(hash)s)
        returning id, name, start, active, inserted_at, user_id, hash
        """,
        {"user_id": user_id, "name": name, "start": start, "hash": hash},
    )
    assert row
    return row


async def deactivate_key(tx: Tx, id: int) -> None:
    await tx.run("update api_keys set active = false, revoked_at = now() where id = %(id)s and active", {"id": id})


async def is_active(reader: Reader, id: int) -> bool:
    return bool(await reader.value("select active from api_keys where id = %(id)s", {"id": id}))


async def end_keys(tx: Tx, user_id: int, *, owner_verified: bool) -> int:
    """End every key of an organizer. Returns the number of ended keys."""
    return await tx.value(
        """
        with ended_key as (
            update api_keys set active = false, revoked_at = now(), owner_verified = %(owner_verified)s
             where user_id = %(user_id)s and active returning 1)
        select count(*) from ended_key
        """,
        {"user_id": user_id, "owner_verified": owner_verified},
    )


async def is_organizer(reader: Reader, user_id: int) -> bool:
    return bool(
        await reader.value(
            "select true from users where id = %(id)s and role in ('organizer', 'admin')", {"id": user_id}
        )
    )
