"""What agents did: it is stored by the calls of agents, read by the organizer, and deleted after 90 days."""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Annotated, Any, LiteralString, NamedTuple, TypeAlias

import msgspec
from msgspec import Meta, Struct

from holdfast.events.resources import Reader, Tx
from holdfast.events.users.model import PERSON_EMAIL
from holdfast.kit.contract.caller import Caller
from holdfast.kit.contract.command import Command, Id
from holdfast.kit.operations.operation import Call, Operation, read

MAX_ACTIONS = 200

MAX_ID = 2**63 - 1


class ActionSubject(NamedTuple):
    """What an action was about; all None: about the organizer itself. `public_id`: of a person."""

    event_id: int | None = None
    queue_id: int | None = None
    key_id: int | None = None
    public_id: str | None = None


def _event(command: Any, _: Any) -> ActionSubject:
    return ActionSubject(event_id=command.event_id)


def _new_event(_: Any, event: Any) -> ActionSubject:
    return ActionSubject(event_id=event.id)


def _registration(command: Any, _: Any) -> ActionSubject:
    return ActionSubject(event_id=command.event_id, public_id=command.user_id)


def _new_registration(command: Any, accepted: Any) -> ActionSubject:
    """The address at which its status is read ends with the public id of the person."""
    return ActionSubject(event_id=command.event_id, public_id=accepted.next.url.rpartition("/")[2])


def _queue(command: Any, _: Any) -> ActionSubject:
    return ActionSubject(queue_id=command.queue_id)


def _new_queue(_: Any, queue: Any) -> ActionSubject:
    return ActionSubject(queue_id=queue.id)


def _key(command: Any, _: Any) -> ActionSubject:
    return ActionSubject(key_id=command.id)


def _new_key(_: Any, key: Any) -> ActionSubject:
    return ActionSubject(key_id=key.id)


def _organizer(_: Any, __: Any) -> ActionSubject:
    return ActionSubject()


SubjectFunction: TypeAlias = Callable[[Any, Any], ActionSubject]
"""Gives what a call was about, by its command and its answer."""

STORED_OPERATIONS: Mapping[str, SubjectFunction] = {
    "create_event": _new_event,
    "update_event": _event,
    "cancel_event": _event,
    "add_event_photo": _event,
    "set_primary_photo": _event,
    "remove_event_photo": _event,
    "create_registration": _new_registration,
    "update_registration": _registration,
    "delete_registration": _registration,
    "create_queue": _new_queue,
    "update_queue": _queue,
    "delete_queue": _queue,
    "create_api_key": _new_key,
    "revoke_api_key": _key,
    "create_onboarding_link": _organizer,
    "set_webhook": _organizer,
    "delete_webhook": _organizer,
    "ping_webhook": _organizer,
    "resend_webhook_messages": _organizer,
}
"""The operations whose calls by agents are stored, each with the function that gives what a call was about."""

APPROVABLE_OPERATIONS = STORED_OPERATIONS.keys() - {
    "set_webhook",
    "delete_webhook",
    "ping_webhook",
    "resend_webhook_messages",
}
"""The operations for which agents can ask a person. Agents that ask first are refused the others."""

_VERSION_OF_EVENT: LiteralString = "select md5(events::text) from events where id = %(event_id)s"
_VERSION_OF_REGISTRATION: LiteralString = """
    select md5(registrations::text) from registrations
     where event_id = %(event_id)s and user_id = (select id from users where public_id = %(user_id)s)
"""
_VERSION_OF_QUEUE: LiteralString = "select md5(queues::text) from queues where id = %(queue_id)s"
_VERSION_OF_KEY: LiteralString = "select md5(active::text) from api_keys where id = %(id)s"

MAY_CHANGE_NOTHING: Mapping[str, LiteralString] = {
    "update_event": _VERSION_OF_EVENT,
    "cancel_event": _VERSION_OF_EVENT,
    "set_primary_photo": _VERSION_OF_EVENT,
    "update_registration": _VERSION_OF_REGISTRATION,
    "update_queue": _VERSION_OF_QUEUE,
    "revoke_api_key": _VERSION_OF_KEY,
}
"""The operations that succeed, and change nothing, when what they ask for is so already. Each has the statement for the
version of its row; the fields of the command are its parameters.
"""

NEEDS_NEW_REGISTRATION = frozenset({"create_registration"})
"""The operations that succeed, and change nothing, for a person who is registered already. Their actions are stored
with a new registration only."""


class ListAgentActions(Command):
    before: Annotated[Id | None, Meta(description="Only those older than this one.")] = None
    limit: Annotated[int, Meta(ge=1, le=MAX_ACTIONS)] = MAX_ACTIONS


class AgentAction(Struct):
    """One change that an agent made.

    credential           the key or the app that made it, such as `key 7`
    agent_name           its name then; None: it has none
    user_id              the public id of the person it was about, while there is a registration
    email                the address of this person
    status               of the registration now; None: there is none any more
    event_title          None if it was about no event
    is_event_upcoming    whether the event has not begun and is not cancelled
    is_queue_open        whether the queue is not deleted
    is_key_active        whether the key it was about is not revoked
    """

    id: int
    credential: str
    agent_name: str | None
    operation: str
    event_id: int | None
    queue_id: int | None
    key_id: int | None
    done_at: datetime
    user_id: str | None
    email: str | None
    status: str | None
    event_title: str | None
    is_event_upcoming: bool
    queue_title: str | None
    is_queue_open: bool
    key_name: str | None
    is_key_active: bool


class AgentActionLog:
    """Stores what agents did for organizers, as `runner.AgentLog`; not for admin keys, which belong to no organizer."""

    def covers(self, operation: Operation) -> bool:
        return operation.name in STORED_OPERATIONS

    async def version(self, tx: Tx, operation: Operation, command: Any) -> str | None:
        statement = MAY_CHANGE_NOTHING.get(operation.name)
        return await tx.value(statement, msgspec.structs.asdict(command)) if statement else None

    async def store(self, tx: Tx, operation: Operation, answered_calls: Sequence[tuple[Call[Any], Any]]) -> None:
        actions = [
            {
                "organizer_id": call.caller.tenant_id,
                "by_key_id": call.caller.id if call.caller.principal == "api_key" else None,
                "by_grant_id": call.caller.id if call.caller.principal == "access_token" else None,
                "operation": operation.name,
                "program": call.caller.program,
                "needs_new_registration": operation.name in NEEDS_NEW_REGISTRATION,
                **STORED_OPERATIONS[operation.name](call.command, answer)._asdict(),
            }
            for call, answer in answered_calls
            if call.caller.tenant_id is not None
        ]
        if actions:
            await insert_actions(tx, actions)


async def list_actions(reader: Reader, caller: Caller, command: ListAgentActions) -> Sequence[AgentAction]:
    """List what agents did for an organizer, the newest first."""
    return await reader.rows(
        AgentAction,
        f"""
        select action.id, coalesce('key ' || by_key_id, 'app ' || by_grant_id) as credential, agent_name, operation,
               event_id, queue_id, action.key_id, done_at, person.public_id as user_id, person.email, person.status,
               event.title as event_title, coalesce(event.is_upcoming, false) as is_event_upcoming,
               queue.title as queue_title, coalesce(queue.is_open, false) as is_queue_open,
               key.name as key_name, coalesce(key.active, false) as is_key_active
          from (select * from agent_actions
                 where organizer_id = %(organizer_id)s and id < %(before)s order by id desc limit %(limit)s) as action
          left join lateral (
               select title, cancelled_at is null and datetime > now() as is_upcoming from events
                where events.id = action.event_id and organizer_id = %(organizer_id)s limit 1) as event on true
          left join lateral (
               select users.public_id, {PERSON_EMAIL} as email, registrations.status::text as status
                 from registrations join users on users.id = registrations.user_id
                where registrations.event_id = action.event_id and registrations.user_id = action.user_id
                  and registrations.organizer_id = %(organizer_id)s limit 1) as person on true
          left join lateral (
               select title, deleted_at is null as is_open from queues
                where queues.id = action.queue_id and organizer_id = %(organizer_id)s limit 1) as queue on true
          left join lateral (
               select name, active from api_keys
                where api_keys.id = action.key_id and api_keys.user_id = %(organizer_id)s limit 1) as key on true
         order by action.id desc
        """,
        {"organizer_id": caller.tenant, "before": command.before or MAX_ID, "limit": command.limit},
    )


async def forget_organizer(tx: Tx, organizer_id: int) -> None:
    """Delete what agents did for an organizer that ends, and what they ask for."""
    await tx.run("delete from agent_actions where organizer_id = %(id)s", {"id": organizer_id})
    await tx.run("delete from agent_requests where tenant_id = %(id)s", {"id": organizer_id})


async def insert_actions(tx: Tx, actions: Sequence[Mapping[str, Any]]) -> None:
    """Store actions, each with the name that its key or app has now."""
    await tx.run(
        """
        insert into agent_actions (organizer_id, by_key_id, by_grant_id, agent_name, operation, event_id, queue_id,
                                   key_id, user_id)
        select action.organizer_id, action.by_key_id, action.by_grant_id,
               left(coalesce(key.name, app.name, app.host, nullif(action.program, '')), 300), action.operation,
               action.event_id, action.queue_id, action.key_id, person.id
          from json_to_recordset(%(actions)s::json)
               as action (organizer_id bigint, by_key_id bigint, by_grant_id bigint, operation text, event_id bigint,
                          queue_id bigint, key_id bigint, public_id text, program text,
                          needs_new_registration boolean)
          left join lateral (select name from api_keys where id = action.by_key_id limit 1) as key on true
          left join lateral (
               select nullif(name, '') as name, substring(oauth_clients.id from '^https://([^/:?#]+)') as host
                 from oauth_grants join oauth_clients on oauth_clients.id = client_id
                where oauth_grants.id = action.by_grant_id limit 1) as app on true
          left join lateral (select id from users where public_id = action.public_id limit 1) as person on true
         where not action.needs_new_registration
            or exists (select from registrations
                        where registrations.event_id = action.event_id and user_id = person.id
                          and received_at >= now())
        """,
        {"actions": msgspec.json.encode(actions).decode()},
    )


LIST_AGENT_ACTIONS = Operation("list_agent_actions", None, read(list_actions))
"""An operation of the console alone: an agent does not read what others did."""
