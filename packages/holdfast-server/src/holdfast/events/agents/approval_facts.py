"""What agents that ask first want to change: the operations that wait, their credentials, and what they are about."""

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, LiteralString

import msgspec
from msgspec import UNSET

from holdfast.accounts.agents.agents_page import REQUESTS
from holdfast.accounts.agents.approvals import Credential, Facts, WaitingRequest
from holdfast.accounts.agents.limits import GRANT_ASKS_FIRST, KEY_ASKS_FIRST, LIMIT_OF_GRANT, LIMIT_OF_KEY
from holdfast.accounts.agents.requests import AgentRequests, CredentialId
from holdfast.events.agents.actions import APPROVABLE_OPERATIONS
from holdfast.events.resources import Reader
from holdfast.events.users.model import PERSON_EMAIL
from holdfast.kit.contract.caller import Caller, api_key

COLUMNS: Mapping[str, str] = {"ends_at": "end_datetime", "opens_at": "draw_at"}
"""The columns of fields of commands that have other names."""

EVENT_FACTS = ("title", "datetime", "currency", "timezone", "cancelled_at")


def approval_gate(base_url: str) -> AgentRequests:
    """What stores the requests of agents. The operations that wait for a person are `APPROVABLE_OPERATIONS`."""
    return AgentRequests(APPROVABLE_OPERATIONS, f"{base_url}{REQUESTS}", has_grants=True)


async def find_credentials(
    reader: Reader, organizer_id: int, ids: Collection[CredentialId]
) -> Mapping[CredentialId, Credential]:
    """The keys and the apps that ask, as they are now."""
    key_ids = [id.key_id for id in ids if id.key_id is not None]
    client_ids = [id.client_id for id in ids if id.client_id is not None]
    return {
        **await _find_keys(reader, organizer_id, key_ids),
        **await _find_apps(reader, organizer_id, client_ids),
    }


async def _find_keys(reader: Reader, organizer_id: int, ids: Sequence[int]) -> Mapping[CredentialId, Credential]:
    if not ids:
        return {}
    rows = await reader.tuples(
        f"""
        select id, name, active, {LIMIT_OF_KEY}, {KEY_ASKS_FIRST} from api_keys
         where id = any(%(ids)s) and user_id = %(organizer_id)s
        """,
        {"ids": list(ids), "organizer_id": organizer_id},
    )
    return {
        CredentialId(id, None): Credential(
            name, api_key(id, organizer_id, limit_id=limit_id, asks_first=asks_first) if active else None
        )
        for id, name, active, limit_id, asks_first in rows
    }


async def _find_apps(reader: Reader, organizer_id: int, ids: Sequence[str]) -> Mapping[CredentialId, Credential]:
    """Each app by its newest grant, if it has one that has not ended by that one."""
    if not ids:
        return {}
    rows = await reader.tuples(
        f"""
        select client_id, coalesce(nullif(name, ''), substring(client_id from '^https://([^/:?#]+)'), ''), grants.id,
               grants.scopes, ended_at is null and expires_at > now(), {LIMIT_OF_GRANT}, {GRANT_ASKS_FIRST}
          from unnest(%(ids)s::text[]) as app
         cross join lateral (select * from oauth_grants where client_id = app and tenant_id = %(organizer_id)s
                              order by ended_at is null desc, id desc limit 1) as grants
          join oauth_clients on oauth_clients.id = client_id
        """,
        {"ids": list(ids), "organizer_id": organizer_id},
    )
    credentials: dict[CredentialId, Credential] = {}
    for client_id, name, id, scopes, is_open, limit_id, asks_first in rows:
        caller = Caller(
            "access_token",
            f"grant {id}",
            id,
            organizer_id,
            frozenset(scopes),
            limit_id=limit_id or 0,
            asks_first=asks_first,
        )
        credentials[CredentialId(None, client_id)] = Credential(name, caller if is_open else None)
    return credentials


async def read_facts(
    reader: Reader, organizer_id: int, requests: Sequence[WaitingRequest], *, locks: bool
) -> Sequence[Facts]:
    """What each request is about, as it is now: what a person is shown of it, and nothing else.

    locks    whether to lock the events and the queues first, as the operations lock them
    """
    # Registering does not lock its event.
    event_ids_to_read = _ids(requests, "event_id", lambda name: name == "create_registration")
    events = await _rows(reader, _EVENTS, organizer_id, event_ids_to_read, locks=False)
    event_ids_to_lock = _ids(requests, "event_id", lambda name: name != "create_registration")
    events |= await _rows(reader, _EVENTS, organizer_id, event_ids_to_lock, locks=locks)
    queues = await _rows(reader, _QUEUES, organizer_id, _ids(requests, "queue_id"), locks=locks)
    people = await _people(reader, organizer_id, requests)
    keys = await _rows(
        reader, _KEYS, organizer_id, _ids(requests, "id", lambda name: name == "revoke_api_key"), locks=False
    )
    every_facts: list[Facts] = []
    for index, request in enumerate(requests):
        name, command = request.operation, request.command
        facts: dict[str, Any] = {}
        if event_id := getattr(command, "event_id", None):
            event = events.get(event_id)
            facts["event"] = event and _event_facts(name, command, event)
        if queue_id := getattr(command, "queue_id", None):
            queue = queues.get(queue_id)
            facts["queue"] = queue and {"title": queue["title"], "is_open": queue["deleted_at"] is None}
            facts["before"] = queue and _changed_values(command, queue)
        if getattr(command, "user_id", None):
            facts["person"] = people.get(index)
        if name == "revoke_api_key":
            facts["key"] = keys.get(command.id)
        every_facts.append(facts)
    return every_facts


_EVENTS: LiteralString = """
    select id, to_jsonb(events) from events where id = any(%(ids)s) and organizer_id = %(organizer_id)s order by id
"""
_QUEUES: LiteralString = """
    select id, to_jsonb(queues) from queues where id = any(%(ids)s) and organizer_id = %(organizer_id)s order by id
"""
_KEYS: LiteralString = """
    select id, json_build_object('name', name, 'active', active) from api_keys
     where id = any(%(ids)s) and user_id = %(organizer_id)s
"""


def _ids(
    requests: Sequence[WaitingRequest], field: str, is_relevant: Callable[[str], bool] = lambda _: True
) -> Sequence[int]:
    """The ids that a field of the commands has, of the operations that are relevant."""
    ids = {getattr(request.command, field, None) for request in requests if is_relevant(request.operation)}
    return sorted(id for id in ids if id)


async def _rows(
    reader: Reader, select: LiteralString, organizer_id: int, ids: Sequence[int], *, locks: bool
) -> dict[int, Any]:
    """Rows of the organizer by their ids, without those that are not there any more."""
    if not ids:
        return {}
    parameters = {"ids": list(ids), "organizer_id": organizer_id}
    return dict(await reader.tuples(f"{select} for no key update" if locks else select, parameters))


async def _people(reader: Reader, organizer_id: int, requests: Sequence[WaitingRequest]) -> Mapping[int, Any]:
    """The person that each request names, by its index, with the registration for the event of the request."""
    people = [
        {
            "index": index,
            "user_id": str(request.command.user_id),
            "event_id": getattr(request.command, "event_id", None),
        }
        for index, request in enumerate(requests)
        if getattr(request.command, "user_id", None)
    ]
    if not people:
        return {}
    rows = await reader.tuples(
        f"""
        select named.index, json_build_object('email', person.email, 'status', person.status,
                                              'amount_paid', person.amount_paid)
          from json_to_recordset(%(people)s::json) as named (index int, user_id text, event_id bigint)
         cross join lateral (
               select {PERSON_EMAIL} as email, registrations.status, amount_paid
                 from registrations join users on users.id = registrations.user_id
                where users.public_id = named.user_id and registrations.organizer_id = %(organizer_id)s
                order by registrations.event_id = named.event_id desc limit 1) as person
        """,
        {"people": msgspec.json.encode(people).decode(), "organizer_id": organizer_id},
    )
    return dict(rows)


def _event_facts(name: str, command: Any, event: Mapping[str, Any]) -> Facts:
    if name == "create_registration":
        return {column: event[column] for column in ("title", "datetime", "timezone")}
    counts = ("registered_count", "waitlisted_count") if name == "cancel_event" else ()
    facts = {column: event[column] for column in (*EVENT_FACTS, *counts)}
    return {**facts, "before": _changed_values(command, event)} if name == "update_event" else facts


def _changed_values(command: Any, row: Mapping[str, Any]) -> Mapping[str, Any]:
    """The present values of the fields that a command changes."""
    return {
        field: row[COLUMNS.get(field, field)]
        for field in command.__struct_fields__
        if getattr(command, field) is not UNSET and COLUMNS.get(field, field) in row and field != "organizer_id"
    }
