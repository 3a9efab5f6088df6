"""The two services, for commands that concern both. Their modules are imported only when a command runs."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from holdfast.commands.backups.options import ServiceName

if TYPE_CHECKING:
    from holdfast.kit.process.service_process import ServiceProcess


def services(name: ServiceName | None) -> "Sequence[ServiceProcess[Any, Any]]":
    """The service with a name, or both."""
    from holdfast.kit.process.startup import importing

    with importing():
        from holdfast.events.service import EVENTS
        from holdfast.inventory.service import INVENTORY

    return [service for service in (INVENTORY, EVENTS) if name is None or service.name == name]
