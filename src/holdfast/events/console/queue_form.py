"""What the form of a queue says, and what it shows."""

import datetime as dt
from collections.abc import Mapping
from typing import Any

from holdfast.events.queues.model import CreateQueue, Queue, UpdateQueue
from holdfast.kit.command import check, numbered
from holdfast.kit.said import marked, said

LABELS = {
    "title": marked("Title"),
    "description": marked("What you tell those who wait"),
    "target_url": marked("Where they are sent when it is their turn"),
    "release_rate": marked("How many are let in"),
    "token_ttl_minutes": marked("Minutes to come in when it is their turn"),
    "max_queue_size": marked("How many may wait at once"),
    "starts_at": marked("Nobody is let in before (UTC)"),
    "ends_at": marked("It ends at (UTC)"),
}
"""What stands above the fields, by their names. The names are those of the commands."""

REQUIRED = ("title", "target_url", "release_rate", "token_ttl_minutes")


def fresh(fields: Mapping[str, str]) -> CreateQueue:
    """The new queue of a form. Raises `validation_failed`."""
    return check(CreateQueue, _values(CreateQueue, {name: fields.get(name, "") for name in LABELS}))


def changed(fields: Mapping[str, str], before: Queue) -> UpdateQueue:
    """What a form changes: only the fields that say something else than the queue. Raises `validation_failed`."""
    was = shown(before)
    typed = {name: fields[name] for name in LABELS if name in fields and not _same(fields[name], was[name])}
    empty = {name: [said("is required")] for name in REQUIRED if typed.get(name) == ""}
    return check(UpdateQueue, {**_values(UpdateQueue, typed), "queue_id": before.id}, unread=empty)


def shown(queue: Queue) -> dict[str, str]:
    """The values that the form of a queue shows."""
    values = {name: getattr(queue, name) for name in LABELS}
    return {name: _text(value) for name, value in values.items()}


def _values(kind: type[CreateQueue | UpdateQueue], said: Mapping[str, str]) -> dict[str, Any]:
    """The fields of a command. What was left empty is nothing."""
    values = numbered(kind, said)
    return {name: None if value == "" else value for name, value in values.items()}


def _text(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, dt.datetime):
        return value.strftime("%Y-%m-%dT%H:%M:%S" if value.second else "%Y-%m-%dT%H:%M")
    return str(value)


def _same(said: str, was: str) -> bool:
    """Whether a form says what the queue says. A browser sends other line breaks, and the form drops outer spaces."""
    return said.replace("\r\n", "\n") == was.replace("\r\n", "\n").strip()
