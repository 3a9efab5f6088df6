"""The command `holdfast … address` of each service."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import typer

if TYPE_CHECKING:
    from holdfast.kit.process.service_process import ServiceProcess


def address_command(product: "Callable[[], ServiceProcess[Any, Any]]", usual_port: int) -> Callable[[], None]:
    """The command of one service. It imports its dependencies only when it runs."""

    def address() -> None:
        """Print the address at which the service is served.

        It is the base address in the settings, or the one that was served last from the data directory.
        """
        from holdfast.kit.process import served_address

        typer.echo(served_address.served_address(product().configured(), usual_port))

    return address
