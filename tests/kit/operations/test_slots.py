"""Slots limit the concurrent pieces of work of one owner; owners take turns, and none waits for ever."""

import asyncio
import contextlib

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from holdfast.kit.contract import caller
from holdfast.kit.contract.caller import Owner
from holdfast.kit.contract.client import CLIENT, Client, begin_request, source
from holdfast.kit.contract.problems import Problem
from holdfast.kit.operations.slots import MAX_WAITING, MAX_WAITING_TOGETHER, Slots
from tests.helpers.any_bound import ANY_BOUND

ADA, BEN = ("ada",), ("ben",)


def stranger(host: str) -> Owner:
    return caller.stranger(source(host)).owner


async def hold(slots: Slots, owner: Owner, until: asyncio.Event, began: list[Owner]) -> None:
    async with slots.slot_of(owner):
        began.append(owner)
        await until.wait()


async def turns() -> None:
    """Let every task that is ready take a few turns."""
    for _ in range(5):
        await asyncio.sleep(0)


async def test_an_owner_has_slots_of_its_own() -> None:
    slots, end, began = Slots(ANY_BOUND, 2), asyncio.Event(), list[Owner]()

    async with asyncio.TaskGroup() as group:
        for owner in (ADA, ADA, ADA, BEN):
            group.create_task(hold(slots, owner, end, began))
        await turns()
        assert began == [ADA, ADA, BEN]
        end.set()

    assert began == [ADA, ADA, BEN, ADA]


async def test_work_that_waits_for_too_long_is_refused_and_takes_no_slot() -> None:
    slots, end, began = Slots(ANY_BOUND, 1, timeout=0.01), asyncio.Event(), list[Owner]()
    holding = asyncio.create_task(hold(slots, ADA, end, began))
    await turns()

    with pytest.raises(Problem) as refusal:
        async with slots.slot_of(ADA):
            raise AssertionError("there is no slot")
    end.set()
    await holding

    assert (refusal.value.code, refusal.value.retry_after) == ("service_unavailable", 1)
    async with slots.slot_of(ADA), slots.slot_of(BEN):
        pass


async def test_an_owner_beyond_its_waiting_limit_is_refused_at_once() -> None:
    slots, end, began = Slots(ANY_BOUND, 1), asyncio.Event(), list[Owner]()
    tasks = [asyncio.create_task(hold(slots, ADA, end, began)) for _ in range(1 + MAX_WAITING)]
    await turns()

    with pytest.raises(Problem, match="waits already"):
        async with slots.slot_of(ADA):
            raise AssertionError("there is no slot")
    async with slots.slot_of(BEN):
        end.set()
    await asyncio.gather(*tasks)

    assert len(began) == 1 + MAX_WAITING


async def test_an_address_waits_for_one_turn_of_a_crowd() -> None:
    slots, began = Slots(ANY_BOUND, 1), list[Owner]()
    crowd, other = stranger("192.0.2.1"), stranger("192.0.2.2")
    *ends, end_of_other = [asyncio.Event() for _ in range(10)]
    tasks = [asyncio.create_task(hold(slots, crowd, end, began)) for end in ends]
    await turns()
    tasks.append(asyncio.create_task(hold(slots, other, end_of_other, began)))
    await turns()

    ends[0].set()
    await turns()
    ends[1].set()
    await turns()

    assert began == [crowd, crowd, other]
    for end in (*ends, end_of_other):
        end.set()
    await asyncio.gather(*tasks)


async def test_one_address_never_holds_all_slots_of_strangers() -> None:
    slots, end, began = Slots(ANY_BOUND, 3), asyncio.Event(), list[Owner]()
    crowd = [asyncio.create_task(hold(slots, stranger("192.0.2.1"), end, began)) for _ in range(50)]
    await turns()

    assert len(began) == 2
    async with slots.slot_of(stranger("2001:db8::1")):
        end.set()
    await asyncio.gather(*crowd)


async def test_networks_of_one_ipv6_network_share_one_turn() -> None:
    slots, began = Slots(ANY_BOUND, 1), list[Owner]()
    first = asyncio.Event()
    networks = [stranger(f"2001:db8:0:{number:x}::1") for number in range(20)]
    other = stranger("2001:db8:1::1")
    ends = [first, *(asyncio.Event() for _ in networks)]
    tasks = [asyncio.create_task(hold(slots, owner, end, began)) for owner, end in zip(networks, ends, strict=False)]
    await turns()
    end_of_other = asyncio.Event()
    tasks.append(asyncio.create_task(hold(slots, other, end_of_other, began)))
    await turns()

    for end in ends[:2]:
        end.set()
        await turns()

    assert other in began
    for end in (*ends, end_of_other):
        end.set()
    await asyncio.gather(*tasks)


async def test_the_largest_crowd_gives_way_when_too_many_strangers_wait() -> None:
    slots, end, began = Slots(ANY_BOUND, 1), asyncio.Event(), list[Owner]()
    crowd = [
        asyncio.create_task(hold(slots, stranger(f"192.0.2.{number}"), end, began))
        for number in range(1, 1 + MAX_WAITING_TOGETHER // MAX_WAITING)
        for _ in range(MAX_WAITING)
    ]
    await turns()
    more = asyncio.create_task(hold(slots, stranger("192.0.2.1"), end, began))
    await turns()

    other = asyncio.create_task(hold(slots, stranger("198.51.100.1"), end, began))
    await turns()
    end.set()
    results = await asyncio.gather(*crowd, more, return_exceptions=True)
    await other

    assert stranger("198.51.100.1") in began
    assert [result for result in results if result] != []
    assert all(isinstance(result, Problem) for result in results if result)


async def test_work_whose_client_has_gone_is_not_begun() -> None:
    slots, end, began = Slots(ANY_BOUND, 1), asyncio.Event(), list[Owner]()
    first = asyncio.create_task(hold(slots, ADA, end, began))
    await turns()
    client = Client()

    async def request() -> None:
        begin_request({CLIENT: client})
        await hold(slots, ADA, end, began)

    gone = asyncio.create_task(request())
    last = asyncio.create_task(hold(slots, ADA, end, began))
    await turns()
    client.leave()
    end.set()
    await asyncio.gather(first, last)

    with pytest.raises(Problem) as problem:
        await gone
    assert problem.value.code == "client_gone"
    assert began == [ADA, ADA]


OWNERS = (
    ADA,
    BEN,
    *(stranger(host) for host in ("192.0.2.1", "192.0.2.2", "2001:db8::1", "2001:db8:0:1::1", "2001:db8:1::1")),
)


@given(
    steps=st.lists(st.tuples(st.sampled_from(("begin", "end", "leave")), st.integers(0, len(OWNERS) - 1)), max_size=80),
    max_running=st.integers(1, 4),
)
def test_slots_are_never_exceeded_lost_or_left_free_while_work_waits(
    steps: list[tuple[str, int]], max_running: int
) -> None:
    async def run() -> None:
        slots = Slots(ANY_BOUND, max_running)
        running: dict[asyncio.Task[None], Owner] = {}
        tasks: dict[asyncio.Task[None], tuple[Owner, asyncio.Event]] = {}

        async def work(owner: Owner, end: asyncio.Event) -> None:
            async with slots.slot_of(owner):
                task = asyncio.current_task()
                assert task
                running[task] = owner
                try:
                    await end.wait()
                finally:
                    del running[task]

        def require_shares() -> None:
            owners = [*running.values()]
            for first in {owner[0] for owner in OWNERS}:
                held = [owner for owner in owners if owner[0] == first]
                assert len(held) <= max_running
                for owner in {*held}:
                    for depth in range(2, len(owner) + 1):
                        same = [other for other in held if other[:depth] == owner[:depth]]
                        assert len(same) <= max(1, max_running - 1)
                waiting = [owner for task, (owner, _) in tasks.items() if task not in running and owner[0] == first]
                if len(held) < max_running:  # a caller who waits all the same has used up the share of its address
                    for owner in waiting:
                        shares = [len([o for o in held if o[:d] == owner[:d]]) for d in range(2, len(owner) + 1)]
                        assert any(share >= max(1, max_running - 1) for share in shares)

        for step, index in steps:
            of_owner = [task for task, (owner, _) in tasks.items() if owner == OWNERS[index]]
            if step == "begin":
                end = asyncio.Event()
                tasks[asyncio.create_task(work(OWNERS[index], end))] = OWNERS[index], end
            elif of_owner and step == "end":
                tasks[of_owner[0]][1].set()
            elif of_owner:
                of_owner[-1].cancel()
            await turns()
            tasks = {task: value for task, value in tasks.items() if not task.done()}
            require_shares()
        for _, end in tasks.values():
            end.set()
        for task in tasks:
            with contextlib.suppress(asyncio.CancelledError):
                await task
        assert not slots._owners  # pyright: ignore[reportPrivateUsage] - nothing is kept of owners without work

    asyncio.run(run())


@given(
    holders=st.lists(st.integers(0, len(OWNERS) - 1), max_size=40),
    asking=st.integers(0, len(OWNERS) - 1),
)
@example(holders=[2, 2, 2, 2, 3, 5, 5, 5], asking=4)
def test_a_check_of_capacity_refuses_exactly_when_taking_a_slot_would(holders: list[int], asking: int) -> None:
    async def run() -> None:
        slots, end = Slots(ANY_BOUND, 2, max_waiting=3, max_waiting_together=6), asyncio.Event()
        tasks = [asyncio.create_task(hold(slots, OWNERS[index], end, [])) for index in holders]
        await turns()

        try:
            slots.require_capacity(OWNERS[asking])
        except Problem:
            has_capacity = False
        else:
            has_capacity = True
        tasks.append(asyncio.create_task(hold(slots, OWNERS[asking], end, [])))
        await turns()

        is_refused = tasks[-1].done()
        end.set()
        await asyncio.gather(*tasks, return_exceptions=True)
        assert has_capacity == (not is_refused)

    asyncio.run(run())
