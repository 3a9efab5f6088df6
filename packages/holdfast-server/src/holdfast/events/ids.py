"""The types of ids in commands."""

from typing import Annotated

from msgspec import Meta

from holdfast.kit.contract.command import Id

EventId = Annotated[Id, Meta(description="From list_events.", examples=[1])]
QueueId = Annotated[Id, Meta(description="From list_queues.", examples=[1])]
KeyId = Annotated[Id, Meta(description="From list_api_keys.", examples=[1])]
