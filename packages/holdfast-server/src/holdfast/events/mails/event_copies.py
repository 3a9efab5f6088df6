"""Copies of events. Their mails have the paragraphs of the organizer too, which the form of an event does not show."""

from holdfast.events.events import operations as events
from holdfast.events.events.model import CreateEvent, Event
from holdfast.events.mails import paragraphs
from holdfast.events.problems import QUOTA_EXCEEDED
from holdfast.events.resources import Conclusion, Steps, Tx
from holdfast.kit.contract.caller import Caller
from holdfast.kit.contract.command import Command
from holdfast.kit.contract.problems import FORBIDDEN, NOT_FOUND, RATE_LIMITED, VALIDATION_FAILED, refuses
from holdfast.kit.operations.operation import Operation, steps


class CopyEvent(Command):
    """Asks to create an event as a copy of another.

    event_id    the event to copy
    """

    event_id: int
    event: CreateEvent


@refuses(NOT_FOUND, FORBIDDEN, VALIDATION_FAILED, QUOTA_EXCEEDED, RATE_LIMITED)
async def copy_event(steps: Steps, caller: Caller, command: CopyEvent) -> Conclusion[Event]:
    """Create an event as a copy of another."""
    html = await events.prepare(steps, caller, command.event)

    async def publish_copy(tx: Tx) -> Event:
        event = await events.publish(tx, caller, command.event, html)
        await paragraphs.copy(tx, caller, command.event_id, event.id)
        return event

    return await steps.conclude(publish_copy)


COPY_EVENT = Operation("copy_event", None, steps(copy_event))
OPERATIONS = (COPY_EVENT,)
"""An operation of the console alone: it has no route of the API and no tool."""
