"""The two services, for commands that concern both. Their modules are imported only when a command runs."""

from collections.abc import Sequence
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from holdfast.kit.process.service_process import ServiceProcess


class ServiceName(StrEnum):
    """The name of a service on the command line."""

    INVENTORY = "inventory"
    EVENTS = "events"


OneService = Annotated[ServiceName | None, typer.Option("--service", help="One service alone.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]


def services(name: ServiceName | None) -> "Sequence[ServiceProcess[Any, Any]]":
    """The service with a name, or both."""
    from holdfast.kit.process.garbage_collection import importing

    with importing():
        from holdfast.events.product import EVENTS
        from holdfast.inventory.product import INVENTORY

    return [service for service in (INVENTORY, EVENTS) if name is None or service.name == name]


def print_json(value: object) -> None:
    """Print a value as JSON, indented."""
    import json

    typer.echo(json.dumps(value, indent=2, default=str))
