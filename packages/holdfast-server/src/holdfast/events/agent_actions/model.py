"""What agents did for an organizer: which operations are stored, and what each was about."""

from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Any, NamedTuple

from msgspec import Meta, Struct

from holdfast.kit.contract.command import Command, Id

APPROVABLE: Mapping[str, str] = {
    "create_event": "event_id",
    "update_event": "event_id",
    "cancel_event": "event_id",
    "add_event_photo": "event_id",
    "set_primary_photo": "event_id",
    "remove_event_photo": "event_id",
    "create_registration": "event_id",
    "update_registration": "event_id",
    "delete_registration": "event_id",
    "create_queue": "queue_id",
    "update_queue": "queue_id",
    "delete_queue": "queue_id",
    "create_api_key": "key_id",
    "revoke_api_key": "key_id",
    "create_onboarding_link": "",
}
"""The operations for which agents can ask a person, each with what it is about; empty: about the organizer itself."""

OPERATIONS: Mapping[str, str] = {
    **APPROVABLE,
    "set_webhook": "",
    "delete_webhook": "",
    "ping_webhook": "",
    "resend_webhook_messages": "",
}
"""The operations that are stored. Agents that ask first are refused the last ones: nobody approves them."""

REPEATABLE = frozenset(
    {
        "update_event",
        "cancel_event",
        "set_primary_photo",
        "update_registration",
        "update_queue",
        "revoke_api_key",
    }
)
"""The operations that succeed, and change nothing, when what they ask for is so already.

`create_registration` is another one: its action is stored only with a new registration.
"""

MAX_ACTIONS = 200


class ActionSubject(NamedTuple):
    """What an action was about. `public_id`: of a person."""

    event_id: int | None = None
    queue_id: int | None = None
    key_id: int | None = None
    public_id: str | None = None


def subject_of(operation: str, command: Any, answer: Any) -> ActionSubject:
    """What a call was about: its command names it, or its answer has the id of what it made."""
    kind = OPERATIONS[operation]
    if not kind:
        return ActionSubject()
    id = getattr(command, kind, None) or getattr(command, "id", None) or answer.id
    public_id = getattr(command, "user_id", None)
    if operation == "create_registration":
        public_id = answer.next.url.rpartition("/")[2]
    return ActionSubject(**{kind: id}, public_id=public_id if kind == "event_id" else None)


class ListAgentActions(Command):
    before: Annotated[Id | None, Meta(description="Only those older than this one.")] = None
    limit: Annotated[int, Meta(ge=1, le=MAX_ACTIONS)] = MAX_ACTIONS


class AgentAction(Struct):
    """One change that an agent made.

    credential      the key or the app that made it, such as `key 7`
    agent_name      its name then; None: it has none
    user_id         the public id of the person it was about, while there is a registration
    email           the address of this person
    status          of the registration now; None: there is none any more
    event_title     None if it was about no event
    is_event_open   whether the event is neither over nor cancelled
    is_queue_open   whether the queue is not deleted
    is_key_active   whether the key it was about is not revoked
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
    is_event_open: bool
    queue_title: str | None
    is_queue_open: bool
    key_name: str | None
    is_key_active: bool
