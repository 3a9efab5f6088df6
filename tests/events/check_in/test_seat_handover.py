"""Giving seats of no-shows to people who wait: never beyond capacity, never from a person who is in."""

import asyncio
import random

import pytest

from holdfast.events.check_in import operations, seat_handover
from holdfast.events.check_in.model import GetCheckInStatus
from holdfast.events.check_in.seat_handover import HandoverPreview, SeatHandover
from holdfast.kit.contract.problems import FORBIDDEN, NOT_FOUND, Problem
from tests.events.check_in.check_in_scene import Entrance, begun_event, code_of, give_seats, link_of, scan_of
from tests.helpers.events_service import Service


async def preview(gate: Entrance) -> HandoverPreview:
    return await gate.run(seat_handover.PREVIEW, GetCheckInStatus(event_id=gate.event_id))


async def statuses(gate: Entrance) -> dict[str, str]:
    rows = await gate.service.run_sql(
        "select split_part(email, '@', 1), coalesce(reason, status::text) from registrations "
        "join users on users.id = user_id where event_id = %(id)s order by arrival",
        id=gate.event_id,
    )
    return dict(rows)


async def test_the_last_to_register_lose_their_seats_to_the_first_on_the_waiting_list(service: Service) -> None:
    gate = await begun_event(service, 4, 6)
    await gate.scan("p3")

    before = await preview(gate)
    done = await give_seats(gate)

    assert (before.absent, before.free, before.waiting, before.promoted_count, before.seats_lost) == (3, 0, 2, 2, 2)
    assert before.names == ["p4@example.com", "p5@example.com"]
    assert (done.promoted_count, done.seats_lost) == (2, 2)
    assert await statuses(gate) == {
        "p0": "registered",
        "p1": "no_show",
        "p2": "no_show",
        "p3": "registered",
        "p4": "registered",
        "p5": "registered",
    }
    assert (await give_seats(gate)).promoted_count == 0


async def test_free_seats_are_given_first(service: Service) -> None:
    gate = await begun_event(service, 2, 4)
    await service.run_sql("update events set capacity = 3 where id = %(id)s", id=gate.event_id)

    before, done = await preview(gate), await give_seats(gate)

    assert (before.free, before.promoted_count, before.seats_lost) == (1, 2, 1)
    assert (done.promoted_count, done.seats_lost) == (2, 1)
    assert [*(await statuses(gate)).values()] == ["registered", "no_show", "registered", "registered"]


async def test_at_most_as_many_seats_are_given_as_the_page_showed(service: Service) -> None:
    gate = await begun_event(service, 3, 6)

    assert (await give_seats(gate, at_most=1)).promoted_count == 1
    assert [*(await statuses(gate)).values()].count("no_show") == 1


async def test_a_scanner_tells_no_shows_from_people_who_have_moved_up(service: Service) -> None:
    gate = await begun_event(service, 1, 2)
    late = scan_of(await link_of(service, gate.event_id, "p0"))
    await give_seats(gate)

    [verdict] = await gate.send(late)

    assert verdict.say == "no_show"
    assert (await gate.scan("p1")).say == "in"
    page = await service.http.get(f"/registrations/{late.text}")
    assert "Your seat was given away." in page.text


async def test_a_person_who_moves_up_gets_a_mail_with_a_code_and_one_who_came_too_late_gets_none(
    service: Service,
) -> None:
    gate = await begun_event(service, 1, 2)
    before = await service.run_sql("select max(id) from mails")

    await give_seats(gate)

    assert await service.run_sql(
        "select kind, recipient from mails where id > %(last)s order by id", last=before[0][0]
    ) == [("promoted", "p1@example.com")]


async def test_a_person_let_in_offline_before_the_seat_was_given_away_is_in_without_a_seat(service: Service) -> None:
    gate = await begun_event(service, 1, 2)
    offline = scan_of(await code_of(service, gate.event_id, "p0"), let_in=True)
    await give_seats(gate)

    [verdict] = await gate.send(offline)

    assert verdict.say == "in_without_seat"
    look = await gate.run(operations.READ_STATUS, GetCheckInStatus(event_id=gate.event_id))
    assert [person.name for person in look.unseated] == ["p0@example.com"]


@pytest.mark.parametrize(("ago", "status"), [("-1 minute", "early"), ("25 hours", "late")])
async def test_seats_are_kept_until_the_event_begins_and_given_for_a_day(
    service: Service, ago: str, status: str
) -> None:
    gate = await begun_event(service, 1, 2, ago)

    assert (await preview(gate)).status == status
    assert (await give_seats(gate)).status == status
    assert [*(await statuses(gate)).values()] == ["registered", "waitlisted"]


async def test_seats_of_a_cancelled_event_are_not_given_away(service: Service) -> None:
    gate = await begun_event(service, 1, 2)
    await service.run_sql("update events set cancelled_at = now() where id = %(id)s", id=gate.event_id)

    assert (await give_seats(gate)).status == "cancelled"
    assert [*(await statuses(gate)).values()] == ["registered", "waitlisted"]


async def test_no_operation_reaches_another_organizers_seats(service: Service) -> None:
    gate = await begun_event(service, 1, 2)
    eve = Entrance(service, await service.organizer(), {"id": gate.event_id})

    for run in (preview, give_seats):
        with pytest.raises(Problem) as refusal:
            await run(eve)
        assert refusal.value.type is FORBIDDEN
        eve.event_id = 999_999
        with pytest.raises(Problem) as refusal:
            await run(eve)
        assert refusal.value.type is NOT_FOUND
        eve.event_id = gate.event_id
    assert [*(await statuses(gate)).values()] == ["registered", "waitlisted"]


async def test_a_person_scanned_while_seats_are_given_away_keeps_the_seat(service: Service) -> None:
    gate = await begun_event(service, 12, 24)
    scans = [gate.scan(f"p{number}", f"Door {number % 3}") for number in range(12)]

    results = await asyncio.gather(*scans[:6], give_seats(gate, 6), *scans[6:], give_seats(gate, 6))

    verdicts = [result for result in results if not isinstance(result, SeatHandover)]
    after = await statuses(gate)
    assert sum(status == "registered" for status in after.values()) == 12
    for name, verdict in zip([f"p{number}" for number in range(12)], verdicts, strict=True):
        assert (after[name], verdict.say) in {("registered", "in"), ("no_show", "no_show")}


@pytest.mark.parametrize("seed", range(8))
async def test_seats_and_arrivals_add_up_in_any_order_of_scans_and_handovers(service: Service, seed: int) -> None:
    chance = random.Random(seed)
    seats, people = chance.randint(1, 6), chance.randint(1, 12)
    gate = await begun_event(service, seats, people)
    names = [f"p{number}" for number in range(people)]
    inside: set[str] = set()
    before = await statuses(gate)

    for _ in range(8):
        if chance.random() < 0.6:
            arriving = chance.sample(names, chance.randint(1, min(3, people)))
            verdicts = await asyncio.gather(*(gate.scan(name) for name in arriving))
            inside |= {name for name, verdict in zip(arriving, verdicts, strict=True) if verdict.say == "in"}
        else:
            seen, done = await preview(gate), await give_seats(gate, chance.randint(1, 5))
            assert done.promoted_count <= seen.promoted_count
        after = await statuses(gate)
        seated = [name for name in names if after[name] == "registered"]
        assert len(seated) <= seats
        assert inside <= {*seated}
        moved = [name for name in names if (before[name], after[name]) == ("waitlisted", "registered")]
        assert moved == [name for name in names if before[name] == "waitlisted"][: len(moved)]
        before = after
    [(counted,)] = await service.run_sql("select registered_count from events where id = %(id)s", id=gate.event_id)
    assert counted == len([status for status in before.values() if status == "registered"])
