"""The two services, for commands that concern both. Their modules are imported only when a command runs."""

from collections.abc import Sequence
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer

from holdfast.kit.process.startup import importing

if TYPE_CHECKING:
    from holdfast.kit.process.service_process import ServiceProcess


class ServiceName(StrEnum):
    """A service, as an option names it."""

    inventory = "inventory"
    events = "events"


ServiceOption = Annotated[ServiceName | None, typer.Option(help="This service alone; otherwise both.")]


def services(name: ServiceName | None) -> "Sequence[ServiceProcess[Any, Any]]":
    """The service with a name, or both."""
    with importing():
        from holdfast.events.service import EVENTS
        from holdfast.inventory.service import INVENTORY

    return [service for service in (INVENTORY, EVENTS) if name is None or service.name == name]
