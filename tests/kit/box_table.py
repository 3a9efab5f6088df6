"""Two boxes in a table, for tests that need something to fight over."""

from typing import Any

from holdfast.kit.postgres.database import Tx
from tests.helpers.events_service import Service


async def box_contents(service: Service) -> list[int]:
    return [content for (content,) in await service.run_sql("select content from boxes order by id")]


async def put_into_box(tx: Tx[Any], box: int) -> None:
    await tx.value("update boxes set content = content + 1 where id = %(box)s returning id", {"box": box})
