"""The types of ids in commands."""

from typing import Annotated

from msgspec import Meta

from holdfast.kit.command import Id
from holdfast.kit.problems import NOT_FOUND

EventId = Annotated[Id, Meta(description="From list_events.", examples=[1])]
QueueId = Annotated[Id, Meta(description="From list_queues.", examples=[1])]
KeyId = Annotated[Id, Meta(description="From list_api_keys.", examples=[1])]


def id_of(text: str) -> int:
    """The id in an address of a page. Raises `not_found`."""
    if text.isascii() and text.isdigit() and len(text) < 19 and text[0] != "0":
        return int(text)
    raise NOT_FOUND()
