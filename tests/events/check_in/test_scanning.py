"""Scanning a code: the verdict, and what is stored: one entry a registration, later scans as double entries."""

import asyncio
import re
import uuid

import pytest

from holdfast.events.check_in import operations
from holdfast.events.check_in.model import FindPeople, GetCheckInStatus, ListChanges, ListPeople, StoreScans, TakeBack
from holdfast.kit.contract.command import check
from holdfast.kit.contract.problems import FORBIDDEN, NOT_FOUND, Problem
from tests.events.check_in.check_in_scene import Entrance, code_of, link_of, scan_of
from tests.helpers.events_service import Service
from tests.helpers.people import handle_of, sign_up


async def entrance(service: Service, *people: str, **fields: object) -> Entrance:
    """The entrance of a new event, with these people."""
    ada = await service.organizer()
    event = await ada.create_event(**fields)
    await sign_up(service, event, *people)
    return Entrance(service, ada, event)


async def test_the_first_scan_is_the_entry_and_later_ones_are_double_entries(service: Service) -> None:
    gate = await entrance(service, "ann", "bob")

    first = await gate.scan("ann", "Door 1")
    second = await gate.scan("ann", "Door 2")
    other = await gate.scan("bob", "Door 2")

    assert (first.say, first.name) == ("in", "Ann Example")
    assert (second.say, second.name) == ("double", "Ann Example")
    assert second.entry == first.entry
    assert second.entry
    assert second.entry.device == "Door 1"
    assert other.say == "in"
    assert await gate.stored_scans() == [
        ("ann", "Door 1", True, False),
        ("ann", "Door 2", False, False),
        ("bob", "Door 2", True, False),
    ]


async def test_the_same_scan_sent_again_changes_nothing(service: Service) -> None:
    gate = await entrance(service, "ann")
    scan = scan_of(await code_of(service, gate.event_id, "ann"))

    answers = [(await gate.send(scan))[0] for _ in range(3)]

    assert [answer.say for answer in answers] == ["in"] * 3
    assert answers[0] == answers[2]
    assert len(await gate.stored_scans()) == 1


async def test_scans_of_one_person_in_one_message_are_one_entry(service: Service) -> None:
    gate = await entrance(service, "ann")
    code = await code_of(service, gate.event_id, "ann")

    verdicts = await gate.send(scan_of(code), scan_of(code), scan_of(code))

    assert [verdict.say for verdict in verdicts] == ["in", "double", "double"]
    assert [is_entry for _, _, is_entry, _ in await gate.stored_scans()] == [True, False, False]


async def test_the_picture_in_the_mail_and_the_short_code_name_the_same_person(service: Service) -> None:
    gate = await entrance(service, "ann")
    link = await link_of(service, gate.event_id, "ann")
    code = await code_of(service, gate.event_id, "ann")

    assert await gate.say(f"http://events.test/registrations/{link}") == "in"
    assert await gate.say(f"https://old.example/registrations/{link}?lang=de") == "double"
    assert await gate.say(link) == "double"
    assert await gate.say(f" {code.lower().replace('-', ' ').replace('0', 'o').replace('1', 'l')} ") == "double"


async def test_the_code_on_the_persons_own_page_is_valid(service: Service) -> None:
    gate = await entrance(service, "ann")
    page = await service.http.get(f"/registrations/{await link_of(service, gate.event_id, 'ann')}")

    [code] = re.findall(r'<strong class="code">([0-9A-Z-]+)</strong>', page.text)

    assert await gate.say(code) == "in"


async def test_a_person_without_a_seat_is_refused_with_the_reason_and_is_not_in(service: Service) -> None:
    gate = await entrance(service, "ann", "bob", capacity=1, waitinglist_capacity=1)
    await service.run_sql("update events set waitinglist_capacity = 3 where id = %(id)s", id=gate.event_id)
    ada = await service.admin()
    await ada.register(gate.event_id, email="cleo@example.com")
    await service.run_sql("update events set waitinglist_capacity = 1 where id = %(id)s", id=gate.event_id)
    await service.settle()
    await service.run_sql("update events set waitinglist_capacity = 3 where id = %(id)s", id=gate.event_id)
    await ada.register(gate.event_id, email="dan@example.com")

    verdicts = [(await gate.scan(name)).say for name in ("bob", "cleo", "dan")]

    assert verdicts == ["waitlisted", "rejected", "pending"]
    assert await gate.stored_scans() == []


async def test_unknown_foreign_and_removed_codes_get_different_verdicts(service: Service) -> None:
    gate = await entrance(service, "ann", "bob")
    ben = await service.organizer()
    other = await ben.create_event()
    await sign_up(service, other, "zoe")
    removed = await link_of(service, gate.event_id, "bob")
    await (await service.admin()).delete(
        f"/api/registrations/{gate.event_id}/{await handle_of(service, 'bob@example.com')}"
    )

    assert await gate.say(await link_of(service, other["id"], "zoe")) == "other_event"
    assert await gate.say(await code_of(service, other["id"], "zoe")) == "unknown"
    assert await gate.say(removed) == "removed"
    ann = await code_of(service, gate.event_id, "ann")
    assert await gate.say(f"{ann[:-1]}{'0' if ann[-1] != '0' else '2'}") == "unknown"
    forged = await link_of(service, gate.event_id, "ann")
    assert await gate.say(f"{forged[:-1]}{'0' if forged[-1] != '0' else '2'}") == "unknown"
    for text in ("", "-", "ZZZZZZZZZZZZ-ZZZZZZ", "ann", "\u202e", "9" * 600, "https://example.com"):
        assert await gate.say(text) == "unknown"
    assert await gate.stored_scans() == []


async def test_a_cancelled_event_checks_in_no_person(service: Service) -> None:
    gate = await entrance(service, "ann")
    await (await service.admin()).delete(f"/api/events/{gate.event_id}")

    assert (await gate.scan("ann")).say == "event_cancelled"
    assert await gate.stored_scans() == []


async def test_a_person_let_in_by_a_device_with_old_data_is_in(service: Service) -> None:
    gate = await entrance(service, "ann", "bob", capacity=2, waitinglist_capacity=1)
    admin = await service.admin()
    await admin.patch(
        f"/api/registrations/{gate.event_id}/{await handle_of(service, 'ann@example.com')}",
        {"registration": {"status": "waitlisted"}},
    )
    await admin.patch(f"/api/events/{gate.event_id}", {"event": {"capacity": 1}})

    assert (await gate.scan("ann")).say == "waitlisted"
    assert (await gate.scan("ann", let_in=True)).say == "in_without_seat"

    check_in = await gate.run(operations.READ_STATUS, GetCheckInStatus(event_id=gate.event_id))
    assert [person.name for person in check_in.unseated] == ["Ann Example"]
    assert check_in.counts.entered == 1
    assert check_in.counts.seated == 0


async def test_an_entry_can_be_taken_back_and_the_next_scan_becomes_the_entry(service: Service) -> None:
    gate = await entrance(service, "ann")
    first, second = await gate.scan("ann", "Door 1"), await gate.scan("ann", "Door 2")

    for _ in range(2):
        await gate.run(operations.TAKE_BACK, TakeBack(event_id=gate.event_id, scan_id=first.id))

    assert await gate.stored_scans() == [("ann", "Door 1", False, True), ("ann", "Door 2", True, False)]
    await gate.run(operations.TAKE_BACK, TakeBack(event_id=gate.event_id, scan_id=second.id))
    assert not any(is_entry for _, _, is_entry, _ in await gate.stored_scans())
    third = await gate.scan("ann", "Door 3")
    assert third.say == "in"
    assert third.entry
    assert third.entry.device == "Door 3"


async def test_a_scan_that_was_taken_back_stays_so_when_it_is_sent_again(service: Service) -> None:
    gate = await entrance(service, "ann")
    scan = scan_of(await code_of(service, gate.event_id, "ann"))
    await gate.send(scan)
    await gate.run(operations.TAKE_BACK, TakeBack(event_id=gate.event_id, scan_id=scan.id))

    [verdict] = await gate.send(scan)

    assert verdict.say == "taken_back"
    assert await gate.stored_scans() == [("ann", "Door 1", False, True)]


@pytest.mark.parametrize("told_at", [-8_640_000_000_000_000, -1, 0, 8_640_000_000_000_000])
async def test_a_clock_that_is_wrong_is_believed_within_bounds(service: Service, told_at: int) -> None:
    gate = await entrance(service, "ann")

    assert (await gate.scan("ann", told_at=told_at)).say == "in"

    [(is_bounded,)] = await service.run_sql(
        "select told_at between stored_at - interval '31 days' and stored_at from check_in_scans"
    )
    assert is_bounded


async def test_concurrent_scans_at_several_entrances_make_one_entry_a_person(service: Service) -> None:
    gate = await entrance(service, "ann", "bob", "cleo")

    verdicts = await asyncio.gather(
        *(gate.scan(name, f"Door {door}") for door in range(8) for name in ("ann", "bob", "cleo"))
    )

    assert sorted(verdict.say for verdict in verdicts) == ["double"] * 21 + ["in"] * 3
    entries = [name for name, _, is_entry, _ in await gate.stored_scans() if is_entry]
    assert sorted(entries) == ["ann", "bob", "cleo"]
    for verdict in verdicts:
        assert verdict.entry
        assert (verdict.entry.id == verdict.id) == (verdict.say == "in")


async def test_scans_with_equal_ids_in_one_message_are_refused(service: Service) -> None:
    scan = {"id": str(uuid.uuid4()), "text": "x", "told_at": 0}

    with pytest.raises(Problem) as refusal:
        check(StoreScans, {"event_id": 1, "device": "Door 1", "scans": [scan, scan]})

    assert refusal.value.extra["errors"] == {"scans": ["must have different ids"]}


async def test_no_operation_reaches_another_organizers_event(service: Service) -> None:
    gate = await entrance(service, "ann")
    verdict = await gate.scan("ann")
    eve = Entrance(service, await service.organizer(), {"id": gate.event_id})
    commands = [
        (operations.STORE_SCANS, StoreScans(event_id=gate.event_id, device="x", scans=[scan_of("x")])),
        (operations.READ_STATUS, GetCheckInStatus(event_id=gate.event_id)),
        (operations.FIND_PEOPLE, FindPeople(event_id=gate.event_id, text="ann")),
        (operations.TAKE_BACK, TakeBack(event_id=gate.event_id, scan_id=verdict.id)),
        (operations.LIST_PEOPLE, ListPeople(event_id=gate.event_id)),
        (operations.LIST_CHANGES, ListChanges(event_id=gate.event_id)),
    ]

    for operation, command in commands:
        with pytest.raises(Problem) as refusal:
            await eve.run(operation, command)
        assert refusal.value.type is FORBIDDEN
        command.event_id = 999_999
        with pytest.raises(Problem) as refusal:
            await eve.run(operation, command)
        assert refusal.value.type is NOT_FOUND
    assert await gate.stored_scans() == [("ann", "Door 1", True, False)]


async def test_the_scan_of_another_event_is_not_taken_back(service: Service) -> None:
    gate = await entrance(service, "ann")
    verdict = await gate.scan("ann")
    ben = await service.organizer()
    other = Entrance(service, ben, await ben.create_event())

    with pytest.raises(Problem) as refusal:
        await other.run(operations.TAKE_BACK, TakeBack(event_id=other.event_id, scan_id=verdict.id))

    assert refusal.value.type is NOT_FOUND
    assert await gate.stored_scans() == [("ann", "Door 1", True, False)]


async def test_an_id_of_a_scan_used_by_another_organizer_can_be_used_again(service: Service) -> None:
    gate = await entrance(service, "ann")
    verdict = await gate.scan("ann")
    ben = await service.organizer()
    event = await ben.create_event()
    await sign_up(service, event, "zoe")
    other = Entrance(service, ben, event)

    assert (await other.scan("zoe", id=verdict.id)).say == "in"
    assert await other.stored_scans() == [("zoe", "Door 1", True, False)]
