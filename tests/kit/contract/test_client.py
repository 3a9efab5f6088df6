"""Work shared by several requests continues when the first client disconnects."""

import asyncio

import pytest

from holdfast.kit.contract.bounds import Bound
from holdfast.kit.contract.caller import stranger
from holdfast.kit.contract.client import (
    CLIENT,
    Client,
    begin_request,
    create_shared_task,
    request_source,
    require_client,
    without_client,
)
from holdfast.kit.contract.problems import Problem
from holdfast.kit.operations.slots import Slots

BOUND = Bound(name="Tests", service="both", total="", tenant="", address="", reserved="", stranger="")
OWNER = stranger("address 192.0.2.1").owner


async def test_shared_work_keeps_its_turn_after_the_first_client_is_gone() -> None:
    slots, end, client = Slots(BOUND, 1), asyncio.Event(), Client()

    async def hold() -> None:
        async with slots.slot_of(OWNER):
            await end.wait()

    async def work() -> str:
        async with slots.slot_of(OWNER):
            return "done"

    async def request() -> asyncio.Task[str]:
        begin_request({CLIENT: client, "client": ("192.0.2.1", 1)})
        return create_shared_task(work())

    holding = asyncio.create_task(hold())
    await asyncio.sleep(0)
    shared = await asyncio.create_task(request())
    await asyncio.sleep(0)
    client.leave()
    end.set()

    assert await shared == "done"
    await holding


async def test_work_that_has_begun_goes_on_when_its_client_is_gone() -> None:
    client = Client()

    async def request() -> str:
        begin_request({CLIENT: client, "client": ("192.0.2.1", 1)})
        require_client()
        client.leave()
        with without_client():
            require_client()
        with pytest.raises(Problem) as gone:
            require_client()
        return f"{gone.value.code} from {request_source()}"

    assert await asyncio.create_task(request()) == "client_gone from address 192.0.2.1"
