"""Warns if several machines use one database while some settings make each machine keep state for itself."""

import asyncio
from collections.abc import Sequence
from typing import Any, LiteralString

import structlog

from holdfast.kit.postgres.database import Database
from holdfast.kit.postgres.notifications import MACHINE, listener_name

log = structlog.get_logger()


async def warn_of_several_machines(database: Database[Any], unshared: Sequence[str]) -> None:
    """Warn whenever this process starts to listen while a process on another machine listens too, until cancelled.

    The process that starts last sees the other one.

    unshared    descriptions of the state that each machine keeps for itself, and of the setting to share it
    """
    connected = asyncio.Event()
    with database.listen("machines", lambda _: connected.set()):
        while True:
            await connected.wait()
            connected.clear()
            if await count_machines(database) > 1:
                for description in unshared:
                    log.warning(f"several machines use this database, but {description}")


async def count_machines(database: Database[Any]) -> int:
    """How many machines have a process of this service that listens."""
    name = listener_name(database.name, "_" * len(MACHINE))
    return await database.read(lambda reader: reader.value(MACHINES, {"name": name}))


MACHINES: LiteralString = """
    select count(distinct (application_name, client_addr)) from pg_stat_activity
     where datname = current_database() and application_name like %(name)s
"""
"""Counts machines. Machines with equal names have different addresses."""
