"""Changes of an event that an organizer makes in a form: they must not overwrite what others have changed since.

The console alone runs them. The API changes the fields that a call has.
"""

import datetime as dt
from collections.abc import Sequence

from msgspec import Struct

from holdfast.events.events import operations as events
from holdfast.events.events.model import EventRow, UpdateEvent
from holdfast.events.problems import QUOTA_EXCEEDED
from holdfast.events.resources import Conclusion, Steps, Tx
from holdfast.kit.contract.caller import Caller
from holdfast.kit.contract.command import Command
from holdfast.kit.contract.problems import FORBIDDEN, NOT_FOUND, RATE_LIMITED, VALIDATION_FAILED, refuses
from holdfast.kit.operations.operation import Operation, steps

FORM_FIELDS = (*(name for name in events.EDITABLE if name not in {"image_keys", "published"}), "opens_at")
"""The fields of the form that can change. Photos and the publication have pages of their own."""


class EditEvent(Command):
    """Asks to change an event.

    seen                the event with the values that the organizer saw; None: the event has other values by now
    ends_registration   whether the change may move a published event into the past
    """

    event_id: int
    changes: UpdateEvent
    seen: EventRow | None = None
    ends_registration: bool = False


class EditResult(Struct):
    """The result of an edit. If `is_done` is false, the event is unchanged.

    is_question   the new date is in the past, and the organizer has not agreed; otherwise another request changed the
                  event first
    """

    event: EventRow
    is_done: bool
    is_question: bool = False


@refuses(NOT_FOUND, FORBIDDEN, VALIDATION_FAILED, QUOTA_EXCEEDED, RATE_LIMITED)
async def edit_event(steps: Steps, caller: Caller, command: EditEvent) -> Conclusion[EditResult]:
    """Change an event, unless it no longer has the values that the organizer saw.

    A published event moves into the past only with `ends_registration`.
    """
    html = await events.prepare_change(steps, caller, command.changes)

    async def change(tx: Tx) -> EditResult:
        event = await events.lock(tx, caller, command.event_id)
        if command.seen is None or _form_values(event) != _form_values(command.seen):
            return EditResult(event, is_done=False)
        begins, now = command.changes.datetime, await tx.value("select now()")
        is_moved_back = isinstance(begins, dt.datetime) and begins <= now < event.datetime
        if is_moved_back and event.published and event.status != "cancelled" and not command.ends_registration:
            return EditResult(event, is_done=False, is_question=True)
        await events.change(tx, caller, command.changes, html)
        return EditResult(event, is_done=True)

    return await steps.conclude(change)


def _form_values(event: EventRow) -> Sequence[object]:
    return [getattr(event, name) for name in FORM_FIELDS]


EDIT_EVENT = Operation("edit_event", None, steps(edit_event))
OPERATIONS = (EDIT_EVENT,)
"""An operation of the console alone: it has no route of the API and no tool."""
