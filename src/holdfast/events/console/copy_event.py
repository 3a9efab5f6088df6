"""Copies an event, with what its form does not show: the organizer's paragraphs in the mails about it."""

from holdfast.events.events import operations as events
from holdfast.events.events.model import CreateEvent, Event
from holdfast.events.images import acceptance
from holdfast.events.mails import paragraphs
from holdfast.events.problems import QUOTA_EXCEEDED
from holdfast.events.resources import Concluded, Steps, Tx
from holdfast.kit.caller import Caller
from holdfast.kit.command import Command
from holdfast.kit.modes import steps
from holdfast.kit.operation import Operation
from holdfast.kit.problems import FORBIDDEN, NOT_FOUND, VALIDATION_FAILED, refuses


class CopyEvent(Command):
    """Asks for an event that is made from another one.

    event_id    the one that is copied
    """

    event_id: int
    event: CreateEvent


@refuses(NOT_FOUND, FORBIDDEN, VALIDATION_FAILED, QUOTA_EXCEEDED)
async def copy(steps: Steps, caller: Caller, command: CopyEvent) -> Concluded[Event]:
    """Create an event as a copy of another."""

    async def made(tx: Tx) -> Event:
        event = await events.publish(tx, caller, command.event)
        await paragraphs.copy(tx, caller, command.event_id, event.id)
        return event

    await acceptance.accept(steps, caller, command.event.image_keys)
    return await steps.conclude(made)


COPY = Operation("copy_event", None, steps(copy))
OPERATIONS = (COPY,)
"""It has no route and no tool of its own."""
