"""Where row-level security keeps tenants apart, every transaction of an operation is of one tenant."""

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from holdfast.kit.contract.caller import Caller, api_key
from holdfast.kit.contract.command import Command
from holdfast.kit.operations.operation import Batch, Operation, batched, read, single, steps
from holdfast.kit.operations.runner import Runner
from holdfast.kit.operations.steps import Conclusion, Steps
from holdfast.kit.postgres.database import Reader, Tx
from tests.helpers.events_service import Service


class Count(Command):
    """Nothing to say."""


async def test_a_batch_never_has_calls_of_two_tenants(service: Service) -> None:
    service.database.tenancy = "select %(tenant)s"

    async def count(tx: Tx[Any], batch: Batch[Count]) -> Sequence[int]:
        return [len(batch.calls) for _ in batch.calls]

    operation = Operation("count_calls", "POST /calls", batched(count))
    run = Runner((operation,), service.database).run_of(operation)

    async def come(tenant: int, times: int) -> list[int]:
        return [await run(api_key(1, tenant), Count()) for _ in range(times)]

    sizes = await asyncio.gather(*(come(tenant, 10) for tenant in (1, 1, 1, 2, 2)))

    assert [set(size) for size in sizes] == [{3}, {3}, {3}, {2}, {2}]


async def test_an_operation_in_steps_enters_the_tenant_in_each_step(service: Service) -> None:
    service.database.tenancy = "select set_config('test.tenant', %(tenant)s, true)"

    async def tenants(opened: Steps[Any], caller: Caller, command: Count) -> Conclusion[list[str]]:
        async def entered(reader: Reader[Any]) -> str:
            return await reader.value("select current_setting('test.tenant')")

        before = [await opened.read(entered), await opened.transact(entered)]

        async def last(tx: Tx[Any]) -> list[str]:
            return [*before, await entered(tx)]

        return await opened.conclude(last)

    operation = Operation("list_tenants", "POST /tenants", steps(tenants))

    assert await Runner((operation,), service.database).run_of(operation)(api_key(1, 7), Count()) == ["7", "7", "7"]


async def test_an_operation_without_a_tenant_is_refused_at_start(service: Service) -> None:
    service.database.tenancy = "select %(tenant)s"

    async def count(tx: Tx[Any], caller: Caller, command: Count) -> int:
        return 1

    public = Operation("count_calls", "POST /calls", single(count), public=True)

    with pytest.raises(AssertionError, match="count_calls: row-level security needs a caller with a tenant"):
        Runner((public,), service.database)


async def test_work_without_a_tenant_enters_none_on_the_same_connections(service: Service) -> None:
    service.database.tenancy = "select set_config('test.tenant', %(tenant)s, true)"
    across = service.database.across_tenants()

    async def entered(reader: Reader[Any], caller: Caller, command: Count) -> str | None:
        return await reader.value("select nullif(current_setting('test.tenant', true), '')")

    operation = Operation("say_tenant", None, read(entered))

    assert await Runner((operation,), service.database).run_of(operation)(api_key(1, 7), Count()) == "7"
    assert await Runner((operation,), across).run_of(operation)(api_key(1, 7), Count()) is None
    assert across.pool is service.database.pool
