"""Daily limits that a person sets for an agent: what the calls of one API key or of one connected app may do in a day.

Events count registrations, inventory counts units of stock. A call is counted in the transaction that stores what it
does, by an update of the row of its limit, which the transaction has locked. So calls of any number of processes never
go beyond a limit together, a failed call is not counted, and the schema refuses more. A day is one of UTC.

The caller of a request carries the id of its limit (`Caller.limit_id`), which comes with the look-up of its credential.
Calls of credentials without a limit read and lock nothing. See decision 108.
"""

import asyncio
import datetime as dt
from collections.abc import Collection, Mapping, Sequence
from typing import Annotated, Any, LiteralString

from msgspec import Meta, Struct

from holdfast.kit.contract.caller import Caller
from holdfast.kit.contract.command import Command, rule
from holdfast.kit.contract.problems import DAILY_LIMIT_REACHED, FORBIDDEN, NOT_FOUND, Problem, refuses
from holdfast.kit.operations.operation import Operation, read, steps
from holdfast.kit.operations.steps import Conclusion, Steps
from holdfast.kit.postgres.database import Reader, Tx
from holdfast.kit.postgres.lookup_cache import TTL_SECONDS
from holdfast.kit.security import api_keys

MAX_DAILY_LIMIT = 10**12

LIMIT_OF_KEY: LiteralString = """
    (select agent_limits.id from agent_limits where key_id = api_keys.id and daily_limit is not null)
"""
"""SQL: the id of the limit of a row of `api_keys`; null: it has none."""

# `exists` would make PostgreSQL read all limits into a hash table, though one is asked for.
KEY_ASKS_FIRST: LiteralString = """
    coalesce((select asks_first from agent_limits where key_id = api_keys.id limit 1), false)
"""
"""SQL: whether a person must approve what a row of `api_keys` wants to change."""

LIMIT_OF_GRANT: LiteralString = """
    (select agent_limits.id from agent_limits
      where agent_limits.tenant_id = grants.tenant_id and agent_limits.client_id = grants.client_id
        and daily_limit is not null)
"""
"""SQL: the id of the limit of a row of `oauth_grants as grants`; null: it has none."""

GRANT_ASKS_FIRST: LiteralString = """
    coalesce((select asks_first from agent_limits
               where agent_limits.tenant_id = grants.tenant_id and agent_limits.client_id = grants.client_id
               limit 1), false)
"""
"""SQL: whether a person must approve what a row of `oauth_grants as grants` wants to change."""


class CredentialCommand(Command):
    """Names a credential: an API key by its id, or a connected app by the id of its client."""

    key_id: int | None = None
    client_id: Annotated[str, Meta(max_length=500)] | None = None

    @rule("key_id", "client_id")
    def one_credential(self) -> str | None:
        return None if (self.key_id is None) != (self.client_id is None) else "name either a key or an app"


class GetLimit(CredentialCommand):
    """Asks for the limit of a credential."""


class ListLimits(Command):
    """Lists the limits of a tenant."""


class SetLimit(CredentialCommand):
    """Sets the daily limit of a credential. None: from now on it has no limit.

    asks_first        whether a person must approve what it wants to change; None: as before
    mails_requests    whether people are mailed when it waits for that; None: as before
    language          the language of these mails; None: as before
    """

    daily_limit: Annotated[int, Meta(ge=0, le=MAX_DAILY_LIMIT)] | None = None
    asks_first: bool | None = None
    mails_requests: bool | None = None
    language: Annotated[str, Meta(max_length=10)] | None = None


class AgentLimit(Struct, frozen=True):
    """The limit of a credential, and what was used of it today.

    key_id             the API key, or
    client_id          the client of the connected app
    daily_limit        None: no limit
    starts_again_at    the end of this day, from which on the count begins at 0
    asks_first         whether a person must approve what it wants to change
    """

    key_id: int | None
    client_id: str | None
    daily_limit: int | None
    used: int
    starts_again_at: dt.datetime
    asks_first: bool


class CredentialLimit(Struct, frozen=True):
    """The limit of a credential, with the name that people know it by.

    name              empty: it has none
    mails_requests    whether people are mailed when it waits for their approval
    """

    name: str
    daily_limit: int | None
    used: int
    starts_again_at: dt.datetime
    asks_first: bool
    mails_requests: bool


class DailyUse(Struct):
    """A limit, and what was used of it today, read under a lock of this transaction.

    daily_limit    what people have set
    used           what was used today, with what this transaction has used so far
    allowed        what may be used today: the limit, or what was used before it was lowered, if that is more
    """

    id: int
    daily_limit: int
    used: int
    allowed: int
    starts_again_at: dt.datetime
    seconds_left: int

    def refusal(self, sentence: str, requested: int = 1) -> Problem:
        """The refusal of a call that would go beyond the limit.

        sentence    what is limited, with the placeholders `limit`, `used` and `requested`
        """
        text = sentence.format(limit=f"{self.daily_limit:,}", used=f"{self.used:,}", requested=f"{requested:,}")
        return DAILY_LIMIT_REACHED(
            f"{text} The count starts again at {self.starts_again_at:%Y-%m-%d %H:%M} UTC.",
            daily_limit=self.daily_limit,
            used=self.used,
            requested=requested,
            starts_again_at=self.starts_again_at.isoformat().replace("+00:00", "Z"),
            retry_after=self.seconds_left,
        )


class _LimitRow(Struct):
    """A stored limit. `is_over`: the day of `used` and `allowed` has ended."""

    id: int
    daily_limit: int | None
    used: int
    allowed: int
    is_over: bool
    starts_again_at: dt.datetime
    seconds_left: int


_TODAY: LiteralString = "(clock_timestamp() at time zone 'UTC')::date"
_TOMORROW: LiteralString = f"(({_TODAY} + 1)::timestamp at time zone 'UTC')"
_USED: LiteralString = f"case when agent_limits.day >= {_TODAY} then agent_limits.used else 0 end"

_LOCK: LiteralString = f"""
    select id, daily_limit, used, allowed, day < {_TODAY} as is_over, {_TOMORROW} as starts_again_at,
           ceil(extract(epoch from {_TOMORROW} - clock_timestamp()))::bigint as seconds_left
      from agent_limits where id = any(%(ids)s) order by id for no key update
"""


async def lock(tx: Tx[Any], ids: Collection[int]) -> Mapping[int, DailyUse | None]:
    """Lock limits until the transaction ends, and wait for other transactions. None: there is no limit any more."""
    return dict.fromkeys(ids) | await _lock_and_reset(tx, ids, _LOCK)


async def lock_skip_locked(tx: Tx[Any], ids: Collection[int]) -> Mapping[int, DailyUse | None]:
    """Lock the limits that no other transaction has locked. The others are left out."""
    return await _lock_and_reset(tx, ids, f"{_LOCK} skip locked")


async def _lock_and_reset(tx: Tx[Any], ids: Collection[int], statement: LiteralString) -> dict[int, DailyUse | None]:
    rows = await tx.rows(_LimitRow, statement, {"ids": list(ids)})
    uses: dict[int, DailyUse | None] = {}
    outdated_ids = [row.id for row in rows if row.is_over]
    if outdated_ids:
        await tx.run(
            f"""
            update agent_limits set day = {_TODAY}, used = 0, allowed = daily_limit
             where id = any(%(ids)s) and day < {_TODAY}
            """,
            {"ids": outdated_ids},
        )
    for row in rows:
        limit = row.daily_limit
        if limit is None:
            uses[row.id] = None
            continue
        used_today, allowed_today = (0, limit) if row.is_over else (row.used, row.allowed)
        uses[row.id] = DailyUse(row.id, limit, used_today, allowed_today, row.starts_again_at, row.seconds_left)
    return uses


async def store_use(tx: Tx[Any], uses: Collection[DailyUse]) -> None:
    """Store what was used of limits that this transaction has locked."""
    await tx.run(
        """
        update agent_limits set used = now_used
          from unnest(%(ids)s::bigint[], %(used)s::bigint[]) as counted (limit_id, now_used) where id = limit_id
        """,
        {"ids": [use.id for use in uses], "used": [use.used for use in uses]},
    )


async def list_limits(reader: Reader[Any], caller: Caller, command: ListLimits) -> Sequence[AgentLimit]:
    """List the limits of a tenant's keys and apps, with what was used of them today."""
    return await reader.rows(
        AgentLimit,
        f"""
        select key_id, client_id, daily_limit, {_USED} as used, {_TOMORROW} as starts_again_at, asks_first
          from agent_limits where tenant_id = %(tenant_id)s and (daily_limit is not null or asks_first)
         order by key_id, client_id
        """,
        {"tenant_id": caller.tenant},
    )


async def move_limit(tx: Tx[Any], tenant_id: int, key_id: int) -> None:
    """Give the limit of a tenant's former key, and the count of today, to the key that replaces it.

    For a service in which a tenant has one key at a time.
    """
    await tx.run(
        "update agent_limits set key_id = %(key_id)s where tenant_id = %(tenant_id)s and key_id is not null",
        {"tenant_id": tenant_id, "key_id": key_id},
    )


def refuse_agent_with_limit(caller: Caller, action: str) -> None:
    """Raise `forbidden` for a credential with a limit: it must not make itself another one without a limit."""
    if caller.limit_id:
        raise FORBIDDEN(
            f"This API key or app has a daily limit, so it cannot {action}.", hint="Ask the person who set the limit."
        )


class LimitOperations:
    """The operations on the limits of one service, for its console. They have no routes and no tools.

    tenant_column    the column of `api_keys` with the tenant of a key
    name_column      SQL: the name of a row of `api_keys`
    """

    def __init__(self, tenant_column: LiteralString, name_column: LiteralString) -> None:
        self._find: Mapping[str, LiteralString] = {
            "key_id": f"""
                select {name_column}, daily_limit, coalesce({_USED}, 0), {_TOMORROW}, coalesce(asks_first, false),
                       coalesce(mails_requests, true)
                  from api_keys left join agent_limits on key_id = api_keys.id
                 where api_keys.id = %(key_id)s and {tenant_column} = %(tenant_id)s and active
                """,
            "client_id": f"""
                select coalesce(name, ''), daily_limit, coalesce({_USED}, 0), {_TOMORROW}, coalesce(asks_first, false),
                       coalesce(mails_requests, true)
                  from oauth_grants join oauth_clients on oauth_clients.id = oauth_grants.client_id
                  left join agent_limits using (tenant_id, client_id)
                 where client_id = %(client_id)s and tenant_id = %(tenant_id)s and ended_at is null
                   and expires_at > now() limit 1
                """,
        }

        @refuses(NOT_FOUND)
        async def get_limit(reader: Reader[Any], caller: Caller, command: GetLimit) -> CredentialLimit:
            """Read the daily limit of an API key or of a connected app, and what was used of it today."""
            return await self._require_limit(reader, caller, command)

        @refuses(NOT_FOUND, FORBIDDEN)
        async def set_limit(steps: Steps[Any], caller: Caller, command: SetLimit) -> Conclusion[AgentLimit]:
            """Set the daily limit of an API key or of a connected app. Only a person or an operator may."""
            if caller.principal not in ("person", "system"):
                raise FORBIDDEN("Only a person sets the limits of agents.", hint="Set it in the console.")
            begins_to_restrict = False

            async def store_and_compare(tx: Tx[Any]) -> AgentLimit:
                nonlocal begins_to_restrict
                limit, begins_to_restrict = await self.store_limit(tx, caller, command)
                return limit

            concluded = await steps.conclude(store_and_compare)
            if begins_to_restrict:
                # A process that misses the notice may use its cached caller, without the limit, for this long.
                await asyncio.sleep(TTL_SECONDS)
            return concluded

        self.list_limits = Operation("list_agent_limits", None, read(list_limits))
        self.get_limit = Operation("get_agent_limit", None, read(get_limit))
        self.set_limit = Operation("set_agent_limit", None, steps(set_limit))
        self.operations = (self.list_limits, self.get_limit, self.set_limit)

    async def _require_limit(self, reader: Reader[Any], caller: Caller, command: CredentialCommand) -> CredentialLimit:
        """The limit of a credential of the caller. Raises `not_found`."""
        kind = "key_id" if command.key_id is not None else "client_id"
        parameters = {"tenant_id": caller.tenant, "key_id": command.key_id, "client_id": command.client_id}
        rows = await reader.tuples(self._find[kind], parameters)
        if not rows:
            raise NOT_FOUND("You have no such key or app.")
        return CredentialLimit(*rows[0])

    async def store_limit(self, tx: Tx[Any], caller: Caller, command: SetLimit) -> tuple[AgentLimit, bool]:
        """Store the limit of a credential. Returns it, and whether a limit, or asking a person, begins with it.

        What was used today stays counted. If it is more than a new limit, nothing more can be used today.
        """
        parameters = {
            "tenant_id": caller.tenant,
            "key_id": command.key_id,
            "client_id": command.client_id,
            "daily_limit": command.daily_limit,
            "asks_first": command.asks_first,
            "mails_requests": command.mails_requests,
            "language": command.language,
        }
        await tx.run(
            """
            select from agent_limits
             where tenant_id = %(tenant_id)s and (key_id = %(key_id)s or client_id = %(client_id)s) for no key update
            """,
            parameters,
        )
        before = await self._require_limit(tx, caller, command)
        conflict: LiteralString = "(key_id)" if command.key_id is not None else "(tenant_id, client_id)"
        limit = await tx.row(
            AgentLimit,
            f"""
            insert into agent_limits (tenant_id, key_id, client_id, daily_limit, allowed, asks_first, mails_requests,
                                      language)
            values (%(tenant_id)s, %(key_id)s, %(client_id)s, %(daily_limit)s, %(daily_limit)s,
                    coalesce(%(asks_first)s, false), coalesce(%(mails_requests)s, true), %(language)s)
                on conflict {conflict} do update
               set daily_limit = excluded.daily_limit, set_at = excluded.set_at,
                   asks_first = coalesce(%(asks_first)s, agent_limits.asks_first),
                   mails_requests = coalesce(%(mails_requests)s, agent_limits.mails_requests),
                   language = coalesce(%(language)s, agent_limits.language),
                   day = greatest(agent_limits.day, {_TODAY}), used = {_USED},
                   allowed = case when excluded.daily_limit is not null
                                  then greatest(excluded.daily_limit, {_USED}) end
            returning key_id, client_id, daily_limit, used, {_TOMORROW} as starts_again_at, asks_first
            """,
            parameters,
        )
        assert limit
        was_limited, is_limited = before.daily_limit is not None, command.daily_limit is not None
        begins_to_restrict = (is_limited and not was_limited) or (limit.asks_first and not before.asks_first)
        if begins_to_restrict or (was_limited, before.asks_first) != (is_limited, limit.asks_first):
            await tx.revoke(api_keys.CHANNEL)
        return limit, begins_to_restrict
