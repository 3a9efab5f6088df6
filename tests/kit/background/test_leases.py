"""A lease is renewed while the work goes on; work whose lease is lost is cancelled before it takes another step."""

import asyncio
import time

import pytest

from holdfast.kit.background import leases
from holdfast.kit.background.leases import LeaseLost, keep_lease
from holdfast.kit.contract.problems import SERVICE_UNAVAILABLE

pytestmark = pytest.mark.usefixtures("short_leases")


async def test_a_lease_is_renewed_for_as_long_as_the_work_takes() -> None:
    renewals = 0
    enough = asyncio.Event()

    async def renew() -> bool:
        nonlocal renewals
        renewals += 1
        if renewals == 20:
            enough.set()
        return True

    async with keep_lease(renew, leases.lease_clock()):
        await enough.wait()

    assert renewals >= 20


async def test_work_is_cancelled_when_another_process_has_taken_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(leases, "LEASE_SECONDS", 3600.0)  # so that the lease is lost, and does not expire

    async def renew() -> bool:
        return False

    async with asyncio.timeout(5):
        with pytest.raises(LeaseLost):
            async with keep_lease(renew, leases.lease_clock()):
                await asyncio.Event().wait()


async def test_work_is_cancelled_when_its_lease_could_not_be_renewed_in_time() -> None:
    async def renew() -> bool:
        raise SERVICE_UNAVAILABLE("The database is away.")

    with pytest.raises(LeaseLost):
        async with keep_lease(renew, leases.lease_clock()):
            await asyncio.Event().wait()


async def test_a_process_that_stalled_makes_no_further_call_when_it_wakes() -> None:
    calls: list[str] = []
    answered = asyncio.Event()
    loop = asyncio.get_running_loop()

    async def renew() -> bool:
        return True

    def stall() -> None:
        time.sleep(1.0)
        loop.call_soon(answered.set)  # the answer is there when the process wakes: the work could go on at once

    async def work() -> None:
        async with keep_lease(renew, leases.lease_clock()):
            calls.append("first")
            loop.call_later(0.01, stall)
            await answered.wait()
            calls.append("second")

    with pytest.raises(LeaseLost):
        await work()

    assert calls == ["first"]


async def test_work_that_was_leased_too_long_ago_is_not_begun() -> None:
    async def renew() -> bool:
        return True

    begun: list[bool] = []

    async def work() -> None:
        async with keep_lease(renew, leases.lease_clock() - 1):
            await asyncio.sleep(0)
            begun.append(True)

    with pytest.raises(LeaseLost):
        await work()
    assert begun == []


async def test_a_timeout_of_the_work_is_raised_unchanged() -> None:
    async def renew() -> bool:
        return True

    with pytest.raises(TimeoutError):
        async with keep_lease(renew, leases.lease_clock()):
            raise TimeoutError
