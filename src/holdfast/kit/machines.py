"""Whether several machines use one database: then some settings would make each keep something for itself."""

import asyncio
from collections.abc import Sequence
from typing import Any, LiteralString

import structlog

from holdfast.kit.database import Database, Reader
from holdfast.kit.notifications import MACHINE, listener_name

log = structlog.get_logger()


async def warn(database: Database[Any], kept: Sequence[str]) -> None:
    """Warn whenever this process has begun to listen and one on another machine listens too, until cancelled.

    Whichever of them begins last sees the other one.

    kept    what each machine would keep for itself, and the setting by which they share it
    """
    connected = asyncio.Event()
    with database.listen("machines", lambda _: connected.set()):
        while True:
            await connected.wait()
            connected.clear()
            if await database.read(lambda reader: _machines(reader, database.name)) > 1:
                for each in kept:
                    log.warning(f"several machines use this database, but {each}")


async def _machines(reader: Reader[Any], service: str) -> int:
    return await reader.value(MACHINES, {"name": listener_name(service, "_" * len(MACHINE))})


MACHINES: LiteralString = """
    select count(distinct (application_name, client_addr)) from pg_stat_activity
     where datname = current_database() and application_name like %(name)s
"""
"""Machines with equal names have different addresses."""
