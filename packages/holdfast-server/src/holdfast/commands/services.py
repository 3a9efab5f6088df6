"""The two services, for commands that concern both. Their modules are imported only when a command runs."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from holdfast.commands.backups.options import ServiceName

if TYPE_CHECKING:
    from holdfast.kit.process.service_process import ServiceProcess


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
