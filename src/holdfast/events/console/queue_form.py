"""What the form of a queue says, and what it shows."""

import datetime as dt
from collections.abc import Mapping
from typing import Any

from holdfast.events.queues.model import CreateQueue, Queue, UpdateQueue
from holdfast.kit.command import check, numbered

FIELDS = (
    *("title", "description", "target_url", "release_rate", "token_ttl_minutes"),
    *("max_queue_size", "starts_at", "ends_at"),
)


def fresh(fields: Mapping[str, str]) -> CreateQueue:
    """The new queue of a form. Raises `validation_failed`."""
    return check(CreateQueue, _values(CreateQueue, {name: fields.get(name, "") for name in FIELDS}))


def changed(fields: Mapping[str, str], before: Queue) -> UpdateQueue:
    """What a form changes: only the fields that say something else than the queue. Raises `validation_failed`."""
    was = shown(before)
    said = {name: fields[name] for name in FIELDS if name in fields and not _same(fields[name], was[name])}
    return check(UpdateQueue, {**_values(UpdateQueue, said), "queue_id": before.id})


def shown(queue: Queue) -> dict[str, str]:
    """The values that the form of a queue shows."""
    values = {name: getattr(queue, name) for name in FIELDS}
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
