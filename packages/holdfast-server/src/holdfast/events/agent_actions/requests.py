"""What agents that ask first want to change: the operations that wait, their credentials, and what they are about."""

from collections.abc import Mapping
from typing import Any, LiteralString

from msgspec import UNSET

from holdfast.accounts.agent_limits import GRANT_ASKS_FIRST, KEY_ASKS_FIRST, LIMIT_OF_GRANT, LIMIT_OF_KEY
from holdfast.accounts.agent_requests import AgentRequests, Credential, Facts, RequestRow
from holdfast.accounts.agents.agents_page import REQUESTS
from holdfast.events.agent_actions.model import OPERATIONS
from holdfast.events.resources import Reader
from holdfast.events.users.model import EMAIL
from holdfast.kit.contract.caller import Caller, api_key
from holdfast.kit.running import operation

COLUMNS: Mapping[str, str] = {"ends_at": "end_datetime", "opens_at": "draw_at"}
"""The columns of fields of commands that have other names."""

EVENT_FACTS = ("title", "datetime", "currency", "timezone", "cancelled_at")


def agent_requests(operations: operation.Operations, base_url: str) -> AgentRequests:
    """The requests of agents. What is told of agents is what waits for a person."""
    return AgentRequests(operations, OPERATIONS, f"{base_url}{REQUESTS}", has_grants=True)


async def find_credential(reader: Reader, organizer_id: int, request: RequestRow) -> Credential:
    """The key or the app that asks, as it is now."""
    parameters = {"organizer_id": organizer_id, "key_id": request.key_id, "client_id": request.client_id}
    if request.key_id is not None:
        keys = await reader.tuples(
            f"""
            select name, active, {LIMIT_OF_KEY}, {KEY_ASKS_FIRST} from api_keys
             where id = %(key_id)s and user_id = %(organizer_id)s
            """,
            parameters,
        )
        for name, active, limit_id, asks_first in keys:
            caller = api_key(request.key_id, organizer_id, limit_id=limit_id, asks_first=asks_first)
            return Credential(name, caller if active else None)
    apps = await reader.tuples(
        f"""
        select coalesce(nullif(name, ''), substring(client_id from '^https://([^/:?#]+)'), ''), grants.id,
               grants.scopes, ended_at is null and expires_at > now(), {LIMIT_OF_GRANT}, {GRANT_ASKS_FIRST}
          from oauth_grants as grants join oauth_clients on oauth_clients.id = client_id
         where client_id = %(client_id)s and tenant_id = %(organizer_id)s
         order by ended_at is null desc, grants.id desc limit 1
        """,
        parameters,
    )
    for name, id, scopes, is_open, limit_id, asks_first in apps:
        caller = Caller(
            "access_token",
            f"grant {id}",
            id,
            organizer_id,
            frozenset(scopes),
            limit_id=limit_id or 0,
            asks_first=asks_first,
        )
        return Credential(name, caller if is_open else None)
    return Credential("", None)


async def read_facts(reader: Reader, organizer_id: int, name: str, command: Any, *, locks: bool) -> Facts:
    """What a command is about, as it is now: what a person is shown of it, and nothing else.

    locks    whether to lock the event or the queue first, as the operations lock it
    """
    facts: dict[str, Any] = {}
    event_id = getattr(command, "event_id", None)
    if event_id and name != "create_registration":
        facts["event"] = await _event(reader, organizer_id, name, command, locks=locks)
    elif event_id:
        facts["event"] = await _titled(reader, organizer_id, event_id)
    if queue_id := getattr(command, "queue_id", None):
        row = await _row(
            reader,
            "select to_jsonb(queues) from queues where id = %(id)s and organizer_id = %(organizer_id)s",
            {"id": queue_id, "organizer_id": organizer_id},
            locks=locks,
        )
        facts["queue"] = row and {"title": row["title"], "is_open": row["deleted_at"] is None}
        facts["before"] = row and _changed(command, row)
    if user_id := getattr(command, "user_id", None):
        facts["person"] = await reader.value(
            f"""
            select json_build_object('email', {EMAIL}, 'status', registrations.status, 'amount_paid', amount_paid)
              from registrations join users on users.id = registrations.user_id
             where users.public_id = %(user_id)s and registrations.organizer_id = %(organizer_id)s
             order by event_id = %(event_id)s desc limit 1
            """,
            {"user_id": str(user_id), "event_id": event_id, "organizer_id": organizer_id},
        )
    if name == "revoke_api_key":
        facts["key"] = await reader.value(
            "select json_build_object('name', name, 'active', active) from api_keys "
            "where id = %(id)s and user_id = %(organizer_id)s",
            {"id": command.id, "organizer_id": organizer_id},
        )
    return facts


async def _titled(reader: Reader, organizer_id: int, event_id: int) -> Any:
    return await reader.value(
        """
        select json_build_object('title', title, 'datetime', datetime, 'timezone', timezone) from events
         where id = %(id)s and organizer_id = %(organizer_id)s
        """,
        {"id": event_id, "organizer_id": organizer_id},
    )


async def _event(reader: Reader, organizer_id: int, name: str, command: Any, *, locks: bool) -> Any:
    row = await _row(
        reader,
        "select to_jsonb(events) from events where id = %(id)s and organizer_id = %(organizer_id)s",
        {"id": command.event_id, "organizer_id": organizer_id},
        locks=locks,
    )
    if row is None:
        return None
    counts = ("registered_count", "waitlisted_count") if name == "cancel_event" else ()
    facts = {column: row[column] for column in (*EVENT_FACTS, *counts)}
    return {**facts, "before": _changed(command, row)} if name == "update_event" else facts


async def _row(
    reader: Reader, select: LiteralString, parameters: Mapping[str, Any], *, locks: bool
) -> dict[str, Any] | None:
    return await reader.value(f"{select} for no key update" if locks else select, parameters)


def _changed(command: Any, row: Mapping[str, Any]) -> Mapping[str, Any]:
    """The present values of the fields that a command changes."""
    return {
        field: row[COLUMNS.get(field, field)]
        for field in command.__struct_fields__
        if getattr(command, field) is not UNSET and COLUMNS.get(field, field) in row and field != "organizer_id"
    }
