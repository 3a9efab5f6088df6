"""The paths of the pages of organizers and events, and the types of ids in paths and commands."""

from typing import Annotated

from msgspec import Meta

from holdfast.kit.contract.command import Id
from holdfast.kit.contract.problems import NOT_FOUND

EventId = Annotated[Id, Meta(description="From list_events.", examples=[1])]
QueueId = Annotated[Id, Meta(description="From list_queues.", examples=[1])]
KeyId = Annotated[Id, Meta(description="From list_api_keys.", examples=[1])]

HOST_SCRIPT = "/embed.js"
"""The path of the script that makes frames in other sites as high as their content. Other sites load it: it stays."""


def organizer_path(slug: str) -> str:
    """The path of the page of an organizer."""
    return f"/organizers/{slug}"


def event_path(organizer_slug: str, event_id: int) -> str:
    """The path of the page of an event."""
    return f"{organizer_path(organizer_slug)}/events/{event_id}"


def released_path(event_id: int, *, framed: bool = False) -> str:
    """The path to which the waiting room of an event sends its visitors."""
    return f"/events/{event_id}{'/embed' if framed else ''}/released"


def id_of(text: str) -> int:
    """The id in a path. Raises `not_found`."""
    if text.isascii() and text.isdigit() and len(text) < 19 and text[0] != "0":
        return int(text)
    raise NOT_FOUND()
