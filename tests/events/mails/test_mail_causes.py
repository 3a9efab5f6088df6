"""Each change of a registration is mailed once, to its person and to no other."""

import pytest

from holdfast.events.mails import sending
from tests.events.mails.post import ANN, BOB, CY, Post, tell_changes


async def test_outcomes_of_registrations_are_mailed(post: Post) -> None:
    event = await post.organizer.create_event(capacity=1, waitinglist_capacity=1)
    await post.register(event["id"], ANN)
    await post.register(event["id"], BOB)
    await post.service.run_sql("update events set waitinglist_capacity = 2 where id = %(id)s", id=event["id"])
    await post.organizer.register(event["id"], email=CY)
    await post.service.run_sql("update events set waitinglist_capacity = 1 where id = %(id)s", id=event["id"])
    await post.service.settle()

    assert await post.sent_kinds() == [(ANN, "seat"), (BOB, "waitlisted"), (CY, "refused")]
    assert await post.sent_kinds() == []


async def test_a_person_who_moves_up_and_a_person_who_is_removed_get_mails_at_once(post: Post) -> None:
    event = await post.organizer.create_event(capacity=1, waitinglist_capacity=1)
    await post.register(event["id"], ANN, BOB)
    await post.deliver()

    await post.organizer.delete(await post.path(event["id"], ANN))

    assert await post.sent_kinds() == [(ANN, "removed"), (BOB, "promoted")]


async def test_a_person_moved_back_to_the_waiting_list_gets_a_mail(post: Post) -> None:
    event = await post.organizer.create_event(capacity=1, waitinglist_capacity=5)
    await post.register(event["id"], ANN)
    await post.deliver()

    await post.organizer.patch(await post.path(event["id"], ANN), {"registration": {"status": "waitlisted"}})

    assert await post.sent_kinds() == [(ANN, "waitlisted")]


async def test_a_change_that_moves_no_person_is_not_mailed(post: Post) -> None:
    event = await post.organizer.create_event(capacity=2, price=500, pricing_mode="fixed")
    await post.register(event["id"], ANN)
    await post.deliver()

    await post.organizer.patch(await post.path(event["id"], ANN), {"registration": {"amount_paid": 100}})
    await post.organizer.patch(
        f"/api/events/{event['id']}", {"event": {"title": "New", "body": "New", "capacity": 9, "price": 700}}
    )

    assert await post.sent_kinds() == []


async def test_a_registration_with_mails_turned_off_gets_none(post: Post) -> None:
    event = await post.organizer.create_event(capacity=1, waitinglist_capacity=1)
    await post.register(event["id"], ANN, BOB, notify=False)
    await post.organizer.patch(f"/api/events/{event['id']}", {"event": {"address": "Elsewhere 5"}})
    await post.organizer.delete(await post.path(event["id"], ANN))
    await post.organizer.delete(f"/api/events/{event['id']}")

    assert await post.sent_kinds() == []
    assert await post.service.run_sql("select from mails") == []


async def test_a_person_who_stops_the_mails_gets_none_that_still_waits(post: Post) -> None:
    event = await post.organizer.create_event()
    await post.register(event["id"], ANN)
    await post.service.run_sql("update registrations set notify = false")

    assert await post.sent_kinds() == []


async def test_a_mail_that_is_no_longer_true_when_it_is_due_is_not_sent(post: Post) -> None:
    event = await post.organizer.create_event(capacity=1, waitinglist_capacity=2)
    await post.register(event["id"], ANN, BOB, CY)
    await post.organizer.delete(await post.path(event["id"], ANN))

    # Ann had a seat, Bob waited: both were true for a moment.
    assert await post.sent_kinds() == [(CY, "waitlisted"), (ANN, "removed"), (BOB, "promoted")]


async def test_a_person_who_registers_again_gets_the_mail_of_the_new_registration_only(post: Post) -> None:
    event = await post.organizer.create_event()
    await post.register(event["id"], ANN)
    await post.organizer.delete(await post.path(event["id"], ANN))
    await post.register(event["id"], ANN)

    assert await post.sent_kinds() == [(ANN, "seat")]
    outcomes = await post.service.run_sql("select kind, outcome from mails order by id")
    assert outcomes == [("seat", "superseded"), ("removed", "superseded"), ("seat", "sent")]


async def test_registrations_of_one_batch_are_mailed_in_order_of_arrival(post: Post) -> None:
    event = await post.organizer.create_event(capacity=20, waitinglist_capacity=10)
    people = [f"{number}@example.com" for number in range(40)]
    for email in people[:30]:
        await post.organizer.register(event["id"], email=email)
    await post.service.settle()

    kinds = await post.service.run_sql("select recipient, kind from mails order by id")
    assert kinds == [(person, "seat") for person in people[:20]] + [(person, "waitlisted") for person in people[20:30]]


# Changes of events


@pytest.mark.parametrize(
    "change",
    [
        {"datetime": "2031-05-01T18:00:00Z"},
        {"ends_at": "2037-05-01T18:00:00Z"},
        {"timezone": "Europe/Berlin"},
        {"address": "Elsewhere 5"},
        {"location_name": "The other hall"},
    ],
)
async def test_a_new_date_or_place_is_mailed_to_every_registered_person(change: dict[str, str], post: Post) -> None:
    event = await post.organizer.create_event(capacity=1, waitinglist_capacity=1)
    await post.register(event["id"], ANN, BOB)
    await post.deliver()
    await post.organizer.patch(f"/api/events/{event['id']}", {"event": change})
    await post.service.run_sql("update events set capacity = 5 where id = %(id)s", id=event["id"])
    await post.register(event["id"], CY)

    assert sorted(await post.sent_kinds()) == [(ANN, "event_changed"), (BOB, "event_changed"), (CY, "seat")]
    assert await post.service.run_sql("select from mail_announcements") == []


async def test_only_the_last_of_several_changes_of_an_event_is_mailed(post: Post) -> None:
    event = await post.organizer.create_event()
    await post.register(event["id"], ANN)
    await post.deliver()
    for address in ("First street 1", "Second street 2"):
        await post.organizer.patch(f"/api/events/{event['id']}", {"event": {"address": address}})

    assert await post.sent_kinds() == [(ANN, "event_changed")]
    assert "Second street 2" in str(post.server.received[-1].mail.get_body(("plain",)))


async def test_changes_are_gathered_for_ten_minutes_from_the_first(post: Post) -> None:
    event = await post.organizer.create_event()
    await post.register(event["id"], ANN)
    await post.deliver()
    address = f"/api/events/{event['id']}"
    for number in range(8):
        await post.organizer.patch(address, {"event": {"address": f"Main street {number}"}})
    await post.register(event["id"], BOB)
    await post.organizer.patch(address, {"event": {"location_name": "The other hall"}})
    await sending.process_due_announcements(post.service.database)

    assert await post.service.run_sql(
        "select kind, due_at - now() between interval '9 minutes' and interval '10 minutes' from mail_announcements"
    ) == [("event_changed", True)]
    assert await post.service.run_sql("select from mails where kind = 'event_changed'") == []
    assert sorted(await post.sent_kinds()) == [(ANN, "event_changed"), (BOB, "event_changed"), (BOB, "seat")]


async def test_a_cancellation_is_mailed_at_once_and_replaces_mails_of_earlier_changes(post: Post) -> None:
    event = await post.organizer.create_event()
    await post.register(event["id"], ANN)
    await post.deliver()
    await post.organizer.patch(f"/api/events/{event['id']}", {"event": {"address": "Elsewhere 5"}})
    await post.organizer.delete(f"/api/events/{event['id']}")

    await sending.process_due_announcements(post.service.database)

    kinds = await post.service.run_sql("select kind from mails order by id")
    assert kinds == [("seat",), ("event_cancelled",)]
    assert await post.service.run_sql("select from mail_announcements") == []


async def test_a_change_after_a_sent_mail_waits_for_ten_minutes_again(post: Post) -> None:
    event = await post.organizer.create_event()
    await post.register(event["id"], ANN)
    await post.deliver()
    for address in ("First street 1", "Second street 2"):
        assert await post.sent_kinds() == []
        await post.organizer.patch(f"/api/events/{event['id']}", {"event": {"address": address}})
        await sending.process_due_announcements(post.service.database)
        assert await post.service.run_sql("select from mail_announcements") == [()]
        assert await post.sent_kinds() == [(ANN, "event_changed")]


async def test_a_change_that_became_mails_already_gives_way_to_a_later_one(post: Post) -> None:
    event = await post.organizer.create_event()
    await post.register(event["id"], ANN)
    await post.deliver()
    post.server.stop()
    for address in ("First street 1", "Second street 2"):
        await post.organizer.patch(f"/api/events/{event['id']}", {"event": {"address": address}})
        await tell_changes(post.service)
    post.server.start()

    assert await post.sent_kinds() == [(ANN, "event_changed")]
    kinds = await post.service.run_sql("select kind, outcome from mails order by id")
    assert kinds == [("seat", "sent"), ("event_changed", "superseded"), ("event_changed", "sent")]


async def test_a_cancelled_event_is_mailed_to_each_registered_person_once(post: Post) -> None:
    event = await post.organizer.create_event(capacity=1, waitinglist_capacity=1)
    await post.register(event["id"], ANN, BOB)
    await post.deliver()
    await post.organizer.patch(f"/api/events/{event['id']}", {"event": {"address": "Elsewhere 5"}})
    await post.organizer.register(event["id"], email=ANN)
    for _ in range(2):
        await post.organizer.delete(f"/api/events/{event['id']}")
    await post.service.settle()

    assert sorted(await post.sent_kinds()) == [(ANN, "event_cancelled"), (BOB, "event_cancelled")]
    await post.organizer.delete(await post.path(event["id"], ANN))
    assert await post.sent_kinds() == []


async def test_a_mail_about_a_seat_is_not_sent_once_the_event_is_cancelled(post: Post) -> None:
    event = await post.organizer.create_event()
    await post.register(event["id"], ANN)
    await post.organizer.delete(f"/api/events/{event['id']}")

    assert await post.sent_kinds() == [(ANN, "event_cancelled")]


async def test_a_registration_that_waits_when_the_event_is_cancelled_gets_a_mail_of_refusal(post: Post) -> None:
    event = await post.organizer.create_event()
    await post.organizer.register(event["id"], email=ANN)
    await post.organizer.delete(f"/api/events/{event['id']}")
    await post.service.settle()

    assert await post.sent_kinds() == [(ANN, "refused")]


async def test_changes_of_events_that_are_over_are_not_mailed(post: Post) -> None:
    event = await post.organizer.create_event()
    await post.register(event["id"], ANN, BOB)
    await post.deliver()
    await post.service.run_sql("update events set datetime = now() - interval '1 hour'")
    await post.organizer.patch(f"/api/events/{event['id']}", {"event": {"address": "Elsewhere 5"}})
    await post.organizer.delete(await post.path(event["id"], ANN))
    await post.organizer.delete(f"/api/events/{event['id']}")

    assert await post.sent_kinds() == []
    assert await post.service.run_sql("select from mail_announcements") == []


async def test_an_announcement_reaches_every_registered_person_in_batches(
    post: Post, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("holdfast.events.mails.sending.MAIL_BATCH_SIZE", 3)
    event = await post.organizer.create_event(capacity=20)
    people = [f"{number}@example.com" for number in range(10)]
    await post.register(event["id"], *people)
    await post.deliver()

    await post.organizer.patch(f"/api/events/{event['id']}", {"event": {"address": "Elsewhere 5"}})

    assert sorted(await post.sent_kinds()) == sorted((person, "event_changed") for person in people)
