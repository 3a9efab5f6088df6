"""Statements on API keys."""

from collections.abc import Mapping, Sequence
from typing import Any, LiteralString

from holdfast.accounts.agent_limits import LIMIT_OF_KEY
from holdfast.events.keys.model import KeyRow, KeyUse
from holdfast.events.resources import Reader, Tx
from holdfast.kit.contract.caller import Caller, api_key
from holdfast.kit.contract.problems import INVALID_API_KEY, Problem
from holdfast.kit.postgres import database

COUNT: LiteralString = "select count(*) from api_keys where user_id = %(organizer_id)s and active"


async def find_callers(reader: database.Reader[Any], hashes: Sequence[bytes]) -> Mapping[bytes, Caller | Problem]:
    """The callers of the hashes of active keys; a problem for keys that ended because their owner was verified.

    Stores the use of a key once an hour, and later if another transaction has locked the key.
    """
    rows = await reader.tuples(
        f"""
        with used as (
            update api_keys set used_at = now()
             where id = any(array(select id from api_keys
                                   where hash = any(%(hashes)s) and active
                                     and (used_at is null or used_at < now() - interval '1 hour')
                                     for no key update skip locked)))
        select hash, id, user_id, owner_verified, {LIMIT_OF_KEY} from api_keys
         where hash = any(%(hashes)s) and (active or owner_verified)
        """,
        {"hashes": list(hashes)},
    )
    return {
        hash: _ended() if owner_verified else api_key(id, user_id, limit_id=limit_id)
        for hash, id, user_id, owner_verified, limit_id in rows
    }


def _ended() -> Problem:
    return INVALID_API_KEY(
        "This API key ended when the owner of the organizer's e-mail address was verified.",
        hint="Make a new key with create_api_key, as the person who owns the address.",
    )


async def list_active_keys(reader: Reader, user_id: int | None) -> list[KeyRow]:
    """The active keys of one user, or all active keys with None."""
    theirs: LiteralString = "" if user_id is None else "and user_id = %(user_id)s"
    return await reader.rows(
        KeyRow,
        f"""
        select id, name, start, active, inserted_at, user_id, hash from api_keys where active {theirs} order by id
        """,
        {"user_id": user_id},
    )


async def list_uses(reader: Reader, user_id: int) -> list[KeyUse]:
    """The last use of each active key of one user."""
    return await reader.rows(
        KeyUse, "select id, used_at from api_keys where active and user_id = %(user_id)s", {"user_id": user_id}
    )


async def find_key(tx: Tx, id: int) -> KeyRow | None:
    return await tx.row(
        KeyRow,
        "select id, name, start, active, inserted_at, user_id, hash from api_keys where id = %(id)s for update",
        {"id": id},
    )


async def insert_key(tx: Tx, user_id: int | None, name: str, start: str, hash: bytes) -> KeyRow:
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
        with ended as (
            update api_keys set active = false, revoked_at = now(), owner_verified = %(owner_verified)s
             where user_id = %(user_id)s and active returning 1)
        select count(*) from ended
        """,
        {"user_id": user_id, "owner_verified": owner_verified},
    )


async def delete_revoked(tx: Tx, limit: int) -> int:
    """Delete keys that were revoked more than 30 days ago. Returns the number deleted."""
    return await tx.value(
        """
        with deleted as (
            delete from api_keys
             where id = any(array(select id from api_keys where revoked_at < now() - interval '30 days'
                                   limit %(limit)s for update skip locked))
         returning 1)
        select count(*) from deleted
        """,
        {"limit": limit},
    )


async def is_organizer(reader: Reader, user_id: int) -> bool:
    return bool(
        await reader.value(
            "select true from users where id = %(id)s and role in ('organizer', 'admin')", {"id": user_id}
        )
    )
