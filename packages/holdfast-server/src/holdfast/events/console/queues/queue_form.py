"""The form of a queue: the values of its fields, and the commands that typed values stand for."""

import datetime as dt
from collections.abc import Mapping
from typing import Any

from holdfast.events.queues.model import CreateQueue, Queue, UpdateQueue
from holdfast.kit.contract.command import check, with_integers
from holdfast.kit.contract.messages import message, translatable

LABELS = {
    "title": translatable("Title"),
    "description": translatable("What you tell those who wait"),
    "target_url": translatable("Where they are sent when it is their turn"),
    "release_rate": translatable("How many are let in"),
    "token_ttl_minutes": translatable("Minutes to come in when it is their turn"),
    "max_queue_size": translatable("How many may wait at once"),
    "starts_at": translatable("Nobody is let in before (UTC)"),
    "ends_at": translatable("It ends at (UTC)"),
    "draw_at": translatable("Entries close, and their order is drawn (UTC)"),
    "public_log": translatable("Publish the order of visitors"),
}
"""The labels of the fields by name. The names are the fields of the commands."""

INSTRUCTIONS = {
    "title": message("Enter a title, such as Summer sale."),
    "target_url": message("Enter an address that begins with https://, such as https://example.com/shop."),
    "release_rate": message("Enter a number of people, such as 60."),
    "token_ttl_minutes": message("Enter a number of minutes, such as 10."),
    "max_queue_size": message("Enter a number of people, such as 5000."),
    "starts_at": message("Enter a date and a time, such as 2030-01-31T18:00."),
    "ends_at": message("Enter a date and a time, such as 2030-01-31T20:00."),
    "draw_at": message("Enter a date and a time, such as 2030-01-31T18:00."),
}
"""What people enter in the fields, by name."""

CHOICES = {"public_log": {"yes": translatable("yes"), "no": translatable("no")}}
"""The labels of the values, for fields with few values."""

PUBLIC = {"yes": True, "no": False}

REQUIRED = ("title", "target_url", "release_rate", "token_ttl_minutes")


def create_command(fields: Mapping[str, str]) -> CreateQueue:
    """The command that creates the queue of a form. Raises `validation_failed`."""
    missing = {**dict.fromkeys(LABELS, ""), "public_log": "yes"}
    return check(CreateQueue, _values(CreateQueue, {name: fields.get(name, missing[name]) for name in LABELS}))


def update_command(fields: Mapping[str, str], before: Queue) -> UpdateQueue:
    """The command for the fields of a form whose values differ from the queue. Raises `validation_failed`."""
    stored_values = field_values(before)
    typed = {
        name: fields[name] for name in LABELS if name in fields and not _is_same(fields[name], stored_values[name])
    }
    empty = {name: [message("is required")] for name in REQUIRED if typed.get(name) == ""}
    return check(UpdateQueue, {**_values(UpdateQueue, typed), "queue_id": before.id}, unread=empty)


def field_values(queue: Queue) -> dict[str, str]:
    """The values that the fields show for a queue."""
    values = {name: getattr(queue, name) for name in LABELS}
    values["public_log"] = "yes" if queue.public_log else "no"
    return {name: _text(value) for name, value in values.items()}


def _values(kind: type[CreateQueue | UpdateQueue], texts: Mapping[str, str]) -> dict[str, Any]:
    """The fields of a command. An empty text becomes None."""
    values = with_integers(kind, texts)
    if texts.get("public_log") in PUBLIC:
        values["public_log"] = PUBLIC[texts["public_log"]]
    return {name: None if value == "" else value for name, value in values.items()}


def _text(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, dt.datetime):
        return value.strftime("%Y-%m-%dT%H:%M:%S" if value.second else "%Y-%m-%dT%H:%M")
    return str(value)


def _is_same(text: str, stored_text: str) -> bool:
    """Whether two texts are equal. A browser sends other line breaks, and the form drops outer spaces."""
    return text.replace("\r\n", "\n") == stored_text.replace("\r\n", "\n").strip()
