"""The types of ids in commands."""

from typing import Annotated

from msgspec import Meta

from holdfast.kit.command import Id

EventId = Annotated[Id, Meta(description="Id of an event; list_events shows them.", examples=[1])]
QueueId = Annotated[Id, Meta(description="Id of a queue; list_queues shows them.", examples=[1])]
KeyId = Annotated[Id, Meta(description="Id of an API key; list_api_keys shows them.", examples=[1])]
