"""A backup is restored while a draw goes on: the list is not drawn again, and no log of it has a fault."""

from collections.abc import Awaitable, Callable, Mapping

import pytest

from holdfast.events.seats import drawn
from tests.events.draws.draw_steps import PEOPLE
from tests.events.draws.event_scene import EventDraw, confirm_entries, opening_event
from tests.events.queues.draw_scene import drawing_queue
from tests.helpers.events_service import Service

Step = Callable[[EventDraw], Awaitable[object]]


async def enter(draw: EventDraw) -> None:
    await draw.enter(*PEOPLE)
    await confirm_entries(draw, "bob", "dan", "gus")


async def place_some(draw: EventDraw) -> None:
    await draw.service.database.transact(lambda tx: drawn.place_entries(tx, draw.event["id"]))


async def cancel(draw: EventDraw) -> None:
    await draw.ada.delete(draw.path)


async def take_as_they_came(draw: EventDraw) -> None:
    await draw.change(opens_at=None)


def freeze(seconds: float) -> Step:
    return lambda draw: draw.freeze(seconds)


def enter_late(name: str) -> Step:
    return lambda draw: draw.enter_late(name)


def leave(name: str) -> Step:
    return lambda draw: draw.ada.delete(draw.polls[name])


RUNS: Mapping[str, list[Step]] = {
    "drawn": [
        *(enter, freeze(1), freeze(2), enter_late("hal"), leave("ann"), EventDraw.draw, place_some, enter_late("ivy")),
        *(leave("flo"), place_some, place_some),
    ],
    "void": [
        enter,
        freeze(91),
        leave("ann"),
        enter_late("hal"),
        take_as_they_came,
        enter_late("ivy"),
        place_some,
        place_some,
    ],
    "cancelled": [enter, freeze(1), freeze(2), enter_late("hal"), cancel, place_some],
}


async def queue(draw: EventDraw, run: str) -> list[str]:
    """All who entered, in the order in which they get their places."""
    order = await draw.order() if run == "drawn" else []
    in_turn = sorted(order, key=lambda ticket: ticket not in {2, 4, 7})
    late_ones = [name for name in draw.polls if name not in PEOPLE]
    return [*([PEOPLE[ticket - 1] for ticket in in_turn] or PEOPLE), *late_ones]


@pytest.mark.parametrize(
    ("run", "number"), [*(("drawn", number) for number in range(len(RUNS["drawn"]))), *((run, None) for run in RUNS)]
)
async def test_an_event_that_is_restored_before_one_or_all_steps_of_its_draw_goes_on_without_a_fault(
    service: Service, monkeypatch: pytest.MonkeyPatch, run: str, number: int | None
) -> None:
    monkeypatch.setattr(drawn, "DRAW_BATCH_SIZE", 3)
    async with opening_event(service, monkeypatch, capacity=3, waitinglist_capacity=2) as draw:
        for done, step in enumerate(RUNS[run]):
            if number in (done, None):
                draw.restore()
            await draw.seal()
            await step(draw)
            await draw.seal()
            assert await draw.faults() == []
        draw.restore()
        await draw.give_places()
        await draw.seal()
        assert await draw.faults() == []
        statuses = [status for name in await queue(draw, run) if (status := await draw.status(name)) != "not_found"]
    if run == "cancelled":
        assert statuses == 8 * ["registration_rejected"]
    else:
        assert statuses[:5] == 3 * ["registered"] + 2 * ["waitlisted"]
        assert {*statuses[5:]} == {"registration_rejected"}


async def test_a_list_whose_freeze_was_not_sealed_in_the_backup_is_not_drawn(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with opening_event(service, monkeypatch, capacity=3) as draw:
        await draw.enter(*PEOPLE)
        await draw.seal()
        await draw.freeze()
        draw.restore()
        await draw.seal()
        await draw.draw()
        await draw.give_places()
        await draw.seal()
        assert await draw.faults() == []
        assert [entry["kind"] for entry in await draw.log() if entry["kind"] in {"freeze", "draw"}] == []
        assert await service.run_sql("select drawn_at, draw_void_at is not null from events") == [(None, True)]


@pytest.mark.parametrize("number", [*range(7), None])
async def test_a_queue_that_is_restored_before_one_or_all_steps_of_its_draw_goes_on_without_a_fault(
    service: Service, monkeypatch: pytest.MonkeyPatch, number: int | None
) -> None:
    async with drawing_queue(service, monkeypatch) as draw:
        steps: list[Callable[[], Awaitable[object]]] = [
            *(lambda: draw.queue.join(*PEOPLE), draw.freeze, lambda: draw.join_late("late"), draw.draw),
            *(lambda: draw.queue.tick(1, times=2), lambda: draw.join_late("new"), lambda: draw.queue.tick(1, times=7)),
        ]
        for done, step in enumerate(steps):
            if number in (done, None):
                draw.restore()
            await draw.seal()
            await step()
            await draw.seal()
            assert await draw.faults() == []
            if step == draw.draw:
                in_turn = [PEOPLE[ticket - 1] for ticket in await draw.order()]
                assert [await draw.queue.position(name) for name in [*in_turn, "late"]] == [*range(1, 9)]
        assert "token" in await draw.queue.status("new")


async def test_a_void_draw_of_a_queue_can_be_given_up_after_a_restore(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with drawing_queue(service, monkeypatch) as draw:
        await draw.queue.join(*PEOPLE)
        await draw.freeze(91)
        await draw.seal()
        draw.restore()
        await draw.queue.join("new")
        await draw.queue.change(draw_at=None)
        assert await draw.queue.tick(1, times=2) == 2
        await draw.seal()
        assert await draw.faults() == []
