"""Draws of queues: the list is frozen before its round, drawn once by it, and the log proves it."""

import asyncio
import datetime as dt
from collections.abc import AsyncIterator

import psycopg
import pytest

from holdfast.events.draws import drawing
from holdfast.events.queues.places import QUEUE_DRAWS
from holdfast.events.queues.visitor_retention import forget_visitors
from holdfast_verify.formats import beacon
from tests.events.draws.draw_steps import PEOPLE
from tests.events.draws.rounds import ROUNDS
from tests.events.queues.draw_scene import ROUND, DrawScene, drawing_queue
from tests.helpers.events_service import Service

SIGNATURE = bytes.fromhex(ROUNDS[ROUND])


@pytest.fixture
async def draw(service: Service, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[DrawScene]:
    async with drawing_queue(service, monkeypatch) as scene:
        yield scene


async def positions(draw: DrawScene, *names: str) -> list[int | None]:
    return [await draw.queue.position(name) for name in names]


async def freeze_list(draw: DrawScene) -> None:
    """Let people enter, and freeze the list, in the sealed log."""
    await draw.queue.join(*PEOPLE)
    await draw.seal()
    await draw.freeze()
    await draw.seal()


async def test_a_list_is_frozen_drawn_once_and_let_in_in_the_drawn_order_as_its_log_proves(draw: DrawScene) -> None:
    queue = draw.queue
    await queue.join(*PEOPLE[:3])
    assert await positions(draw, "ann", "cyd") == [3, 3]
    await queue.join(*PEOPLE[3:])
    assert await queue.tick(60) == 0
    waiting = await queue.status("ann")
    assert waiting["position"] == 7
    assert 3_600 < waiting["estimated_wait_seconds"] <= 3_600 + 120 + 7

    assert await draw.freeze(), "the list was frozen before the log was sealed"
    await draw.seal()
    assert not await draw.freeze(-1)
    assert not await draw.freeze()
    await draw.join_late("late")
    assert await positions(draw, "ann", "gus", "late") == [7, 7, 8]
    await draw.seal()
    await draw.draw(119)
    assert await positions(draw, "ann", "late") == [7, 8], "it was drawn before its round"

    await draw.draw()
    order = [PEOPLE[ticket - 1] for ticket in await draw.order()]
    assert await positions(draw, *order, "late") == [1, 2, 3, 4, 5, 6, 7, 8]
    await draw.draw()
    await draw.freeze()
    await queue.join(*PEOPLE)
    assert await positions(draw, *order, "late") == [1, 2, 3, 4, 5, 6, 7, 8]

    assert await queue.tick(1, times=2) == 2
    assert await positions(draw, *order[:4]) == [None, None, 1, 2]
    verified = await queue.verify(await queue.token(order[0]))
    assert verified.json()["data"]["visitor_id"] == order[0]
    assert await queue.tick(1, times=6) == 6
    assert "token" in await queue.status("late")
    await draw.seal()
    assert await draw.faults() == []
    kinds = [entry["kind"] for entry in await draw.log() if entry["kind"] not in {"arrival", "seal", "release"}]
    assert kinds == ["open", "freeze", "draw"]
    assert (await draw.log())[0]["draw"]["round"] == ROUND


async def test_a_list_that_is_not_frozen_in_time_is_void_until_the_organizer_takes_people_as_they_came(
    draw: DrawScene,
) -> None:
    queue = draw.queue
    await queue.join("ann", "bob")
    await draw.freeze(90)  # not sealed: it waits
    await draw.seal()
    await draw.freeze(91)
    await draw.draw()
    assert await queue.tick(60) == 0
    assert await positions(draw, "ann", "bob") == [2, 2]
    another = (draw.closes + dt.timedelta(days=1)).isoformat()
    refusal = await queue.ada.patch(queue.path, {"queue_event": {"draw_at": another}})
    assert refusal.status_code == 422
    await queue.change(draw_at=None)
    assert await positions(draw, "ann", "bob") == [1, 2]
    assert await queue.tick(1) == 1
    await draw.seal()
    assert await draw.faults() == []
    assert [entry["draw"].get("void") for entry in await draw.log() if "draw" in entry] == [None, True, None]


async def test_a_freeze_that_was_not_in_the_sealed_log_before_the_round_is_not_drawn(draw: DrawScene) -> None:
    await draw.queue.join("ann", "bob")
    await draw.seal()
    await draw.freeze()
    await draw.draw()
    await draw.seal()
    assert await draw.queue.tick(60) == 0
    ((drawn, void),) = await draw.queue.service.run_sql("select drawn_at, draw_void_at is not null from queues")
    assert (drawn, void) == (None, True)


async def test_a_draw_that_ends_in_the_middle_is_made_later_and_two_processes_make_one(draw: DrawScene) -> None:
    await freeze_list(draw)
    database, id = draw.queue.service.database, draw.queue.id
    now = draw.round_at + dt.timedelta(seconds=1)
    await database.transact(lambda tx: drawing.draw(tx, QUEUE_DRAWS, id, ROUND, SIGNATURE, now), is_dry_run=True)
    assert await draw.queue.position("ann") == 7
    results = await asyncio.gather(
        *(database.transact(lambda tx: drawing.draw(tx, QUEUE_DRAWS, id, ROUND, SIGNATURE, now)) for _ in range(2)),
        return_exceptions=True,
    )
    assert results.count("drawn") == 1
    assert {*await positions(draw, *PEOPLE)} == {1, 2, 3, 4, 5, 6, 7}
    await draw.seal()
    assert [entry["kind"] for entry in await draw.log()].count("draw") == 1


async def test_a_round_other_than_the_named_one_cannot_draw_the_list(draw: DrawScene) -> None:
    database, id = draw.queue.service.database, draw.queue.id
    now = draw.round_at + dt.timedelta(seconds=1)

    async def refusal(round: int, signature: bytes, at: dt.datetime = now) -> str:
        with pytest.raises((drawing.DrawRefusal, beacon.InvalidRound)) as error:
            await database.transact(lambda tx: drawing.draw(tx, QUEUE_DRAWS, id, round, signature, at))
        return str(error.value)

    assert "has no frozen list" in await refusal(ROUND, SIGNATURE)
    await freeze_list(draw)
    assert f"is by round {ROUND}, and not by round 42" in await refusal(42, bytes.fromhex(ROUNDS[42]))
    assert "is not that of round" in await refusal(ROUND, bytes.fromhex(ROUNDS[42]))
    assert "By the clock of the database" in await refusal(ROUND, SIGNATURE, draw.closes)
    draw.beacon.rounds[ROUND] = ROUNDS[42]
    await draw.draw()
    assert await draw.queue.position("ann") == 7
    del draw.beacon.rounds[ROUND]
    await draw.draw()
    draw.beacon.rounds[ROUND] = ROUNDS[ROUND]
    await draw.draw(10_000)
    assert "was drawn already" in await refusal(ROUND, SIGNATURE)


async def test_the_schema_refuses_a_second_draw_and_a_changed_freeze(draw: DrawScene) -> None:
    await freeze_list(draw)
    await draw.draw()
    run = draw.queue.service.run_sql
    for statement in (
        "update queue_draws set signature = signature",
        "update queue_freezes set entries = 3",
        "delete from queue_places",
        "delete from queue_draws",
        "insert into queue_draws select * from queue_draws",
        "insert into queue_freezes select * from queue_freezes",
    ):
        with pytest.raises(psycopg.errors.IntegrityError):
            await run(statement)
    for change in (
        "serving = 1, drawn_at = null",
        "draw_round = null",
        "draw_round = 0",
        "draw_entries = -1",
        "draw_entries = null",
        "draw_void_at = now()",
    ):
        with pytest.raises(psycopg.errors.CheckViolation):
            await run(f"update queues set {change}")
    await draw.queue.ada.delete(draw.queue.path)
    await run("delete from queue_visitors")
    await run("delete from queues")
    assert await run("select from queue_freezes") == []


async def test_visitors_of_a_drawn_list_are_kept_until_the_whole_list_is_past(draw: DrawScene) -> None:
    await freeze_list(draw)
    await draw.draw()
    database = draw.queue.service.database
    old = "update queue_releases set released_at = released_at - interval '60 days'"
    await draw.queue.tick(1, times=6)
    await draw.queue.service.run_sql(old)
    assert await database.transact(forget_visitors) == 0
    assert await draw.queue.tick(1) == 1
    await draw.queue.service.run_sql(old)
    assert await database.transact(forget_visitors) >= 7
    assert await draw.queue.service.run_sql("select from queue_visitors") == []


async def test_draw_at_lies_in_the_future_needs_the_log_and_is_fixed_after_the_first_entry(draw: DrawScene) -> None:
    queue = draw.queue
    later = (draw.closes + dt.timedelta(minutes=1)).isoformat()

    async def errors(**fields: object) -> dict[str, list[str]]:
        answer = await queue.ada.patch(queue.path, {"queue_event": fields})
        assert answer.status_code == 422, answer.text
        return answer.json()["errors"]

    assert "future" in str(await errors(draw_at="2020-01-01T00:00:00Z"))
    assert "ends_at" in await errors(ends_at=draw.closes.isoformat())
    assert "public_log" in await errors(public_log=False)
    await queue.change(draw_at=None)
    await queue.change(draw_at=later)
    assert dt.datetime.fromisoformat((await queue.ada.get(queue.path)).json()["data"]["draw_at"]) == (
        dt.datetime.fromisoformat(later)
    )
    await queue.join("ann")
    assert "after the first entry" in str(await errors(draw_at=None))
    assert "after the first entry" in str(await errors(draw_at=draw.closes.isoformat()))
    await queue.change(draw_at=later, title="Another title")
    await draw.seal()
    assert [("given_up" in entry["draw"]) for entry in await draw.log() if "draw" in entry] == [False, True, False]
    assert await draw.faults() == []
