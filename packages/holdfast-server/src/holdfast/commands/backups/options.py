"""Options that several commands about backups have."""

from enum import StrEnum
from typing import Annotated

import typer


class ServiceName(StrEnum):
    """A service, as an option names it."""

    inventory = "inventory"
    events = "events"


ServiceOption = Annotated[ServiceName | None, typer.Option(help="This service alone; otherwise both.")]
