"""Cancelling one's registration can be undone for half a minute; then the seat goes to the next who waits."""

import asyncio
from collections.abc import AsyncIterator

import httpx2
import hypothesis
import pytest
from hypothesis import strategies as st

from holdfast.events.registrations import own_cancellations
from holdfast.events.registrations.model import UNDO_SECONDS
from holdfast.events.settings import Settings
from tests.events.pages.own_registration import (
    ask_to_cancel,
    own_path,
    register_and_settle,
    register_in_order,
    registration_statuses,
)
from tests.helpers.event_visitor import Visitor, field_value, page_state, page_text
from tests.helpers.events_service import Service, running_events

ENTRIES = "select kind, details ->> 'from', details ->> 'to', details ->> 'by' from log_pending where kind = 'change'"


@pytest.fixture
async def limited_service(settings: Settings) -> AsyncIterator[Service]:
    async with running_events(settings.model_copy(update={"forms_per_minute": 3})) as service:
        yield service


async def undo(service: Service, address: str) -> httpx2.Response:
    """Press the button that undoes it; the page that follows."""
    http = Visitor(service).http
    answer = await http.post(f"{address}/undo")
    return await http.get(answer.headers["location"]) if answer.status_code == 303 else answer


async def test_a_seat_stays_the_persons_for_half_a_minute_and_no_log_or_mail_has_anything_of_it(
    service: Service,
) -> None:
    ada, _, [ann, ben] = await register_in_order(service, "ann", "ben")
    mails = await service.run_sql("select count(*) from mails")

    page = await ask_to_cancel(service, ann)
    removed = await own_cancellations.remove_cancelled(service.database)

    assert (page.status_code, page_state(page)) == (200, "registered")
    assert "You are passing your seat on." in page_text(page)
    assert (
        "In 30 seconds, the first person on the waiting list gets your seat. Until then you can undo this."
        in page_text(page)
    )
    assert 'action="' in page.text
    assert removed == 0
    assert await registration_statuses(ada) == {"ann": "registered", "ben": "waitlisted"}
    assert "You are number 1 on the waiting list." in page_text(await Visitor(service).http.get(ben))
    assert await service.run_sql(ENTRIES) == []
    assert await service.run_sql("select count(*) from mails") == mails
    [(seconds,)] = await service.run_sql(
        "select extract(epoch from cancels_at - now())::float8 from registrations where cancels_at is not null"
    )
    assert UNDO_SECONDS - 20 < seconds <= UNDO_SECONDS


async def test_a_cancelled_seat_goes_to_the_waiting_list_and_the_page_says_so_without_a_name(
    service: Service,
) -> None:
    ada, _, [ann, ben, cal] = await register_in_order(service, "ann", "ben", "cal")
    await ask_to_cancel(service, ann)

    assert await service.complete_cancellations() == 1
    page = await Visitor(service).http.get(ann)

    assert (page.status_code, page_state(page)) == (410, "own_cancellation")
    assert "Somebody who waited has your seat now. Thank you." in page_text(page)
    assert not {"ben", "Ben", "cal", "Cal"} & set(page_text(page).split())
    assert await registration_statuses(ada) == {"ben": "registered", "cal": "waitlisted"}
    assert page_state(await Visitor(service).http.get(ben)) == "registered"
    assert "You are number 1 on the waiting list." in page_text(await Visitor(service).http.get(cal))
    assert await service.run_sql(ENTRIES) == [
        ("change", "registered", "removed", "person"),
        ("change", "waitlisted", "registered", "service"),
    ]
    assert await service.complete_cancellations() == 0


async def test_a_cancelled_seat_without_a_waiting_list_is_shown_as_free(service: Service) -> None:
    ada, event, [ann] = await register_in_order(service, "ann")

    question_page = await ask_to_cancel(service, ann)
    await service.complete_cancellations()
    page = await Visitor(service).http.get(ann)

    assert "Your registration is being cancelled." in page_text(question_page)
    assert "Your seat is free for others now." in page_text(page)
    assert f'href="/events/{event["id"]}/registrations"' in page.text
    assert await registration_statuses(ada) == {}


async def test_a_place_on_the_waiting_list_can_be_undone_and_cancelled_too(service: Service) -> None:
    ada, _, [_, ben, cal] = await register_in_order(service, "ann", "ben", "cal")

    question_page = await ask_to_cancel(service, ben)
    undone_page = await undo(service, ben)
    assert "You are leaving the waiting list." in page_text(question_page)
    assert "Nothing has changed: you keep your place." in page_text(undone_page)
    assert await service.complete_cancellations() == 0

    await ask_to_cancel(service, ben)
    await service.complete_cancellations()
    assert "Your registration is cancelled." in page_text(await Visitor(service).http.get(ben))
    assert await registration_statuses(ada) == {"ann": "registered", "cal": "waitlisted"}
    assert "You are number 1 on the waiting list." in page_text(await Visitor(service).http.get(cal))


async def test_a_cancellation_that_is_undone_keeps_the_seat_and_its_place_in_the_order(service: Service) -> None:
    ada, _, [ann, _] = await register_in_order(service, "ann", "ben")
    before = await service.run_sql("select user_id, status, arrival, received_at, log_number from registrations")

    await ask_to_cancel(service, ann)
    page = await undo(service, ann)

    assert await service.complete_cancellations() == 0
    assert page_state(page) == "registered"
    assert "Nothing has changed: you keep your seat." in page_text(page)
    assert "You have a seat." in page_text(page)
    after = await service.run_sql("select user_id, status, arrival, received_at, log_number from registrations")
    assert sorted(after) == sorted(before)
    assert await service.run_sql(ENTRIES) == []
    assert await registration_statuses(ada) == {"ann": "registered", "ben": "waitlisted"}


async def test_undoing_too_late_says_who_has_the_seat(service: Service) -> None:
    ada, _, [ann, _] = await register_in_order(service, "ann", "ben")
    await ask_to_cancel(service, ann)
    await service.complete_cancellations()

    page = await undo(service, ann)

    assert (page.status_code, page_state(page)) == (410, "own_cancellation")
    assert "Somebody who waited has your seat now." in page_text(page)
    assert await registration_statuses(ada) == {"ben": "registered"}


async def test_undoing_works_until_the_seat_has_moved_also_if_that_is_late(service: Service) -> None:
    ada, _, [ann, _] = await register_in_order(service, "ann", "ben")
    await ask_to_cancel(service, ann)
    await service.run_sql("update registrations set cancels_at = now() - interval '1 hour' where cancels_at > now()")
    late = await Visitor(service).http.get(ann)

    page = await undo(service, ann)

    assert "It is happening right now." in page_text(late)
    assert "data-until" not in late.text
    assert page_state(page) == "registered"
    assert await own_cancellations.remove_cancelled(service.database) == 0
    assert await registration_statuses(ada) == {"ann": "registered", "ben": "waitlisted"}


async def test_a_second_request_to_cancel_does_not_restart_the_time_to_undo(service: Service) -> None:
    _, _, [ann] = await register_in_order(service, "ann")
    http = Visitor(service).http
    token = field_value(await http.get(f"{ann}/cancel"), "token")

    first = await http.post(f"{ann}/cancel", data={"token": token})
    time = await service.run_sql("select cancels_at from registrations")
    second = await http.post(f"{ann}/cancel", data={"token": token})

    assert (first.status_code, second.status_code) == (303, 303)
    assert await service.run_sql("select cancels_at from registrations") == time
    assert (await http.get(f"{ann}/cancel")).headers["location"] == ann.removeprefix("http://events.test")


async def test_undo_needs_nothing_but_its_button_and_does_nothing_from_another_site(service: Service) -> None:
    _, _, [ann] = await register_in_order(service, "ann")
    await ask_to_cancel(service, ann)
    http = Visitor(service).http

    looked = await http.get(f"{ann}/undo")
    foreign = await http.post(f"{ann}/undo", headers={"Origin": "https://evil.example"})

    assert (looked.status_code, foreign.status_code) == (303, 403)
    assert await service.complete_cancellations() == 1


async def test_a_person_who_registers_again_before_the_seat_is_cancelled_keeps_it(service: Service) -> None:
    ada, event, [ann, _] = await register_in_order(service, "ann", "ben")

    for register in (
        lambda: Visitor(service).send(event["id"], email="ann@example.com"),
        lambda: ada.register(event["id"], email="ann@example.com"),
    ):
        await ask_to_cancel(service, ann)
        await register()
        assert await service.complete_cancellations() == 0

    assert await registration_statuses(ada) == {"ann": "registered", "ben": "waitlisted"}


async def test_a_waiting_person_who_is_leaving_gets_the_seat_and_passes_it_on(service: Service) -> None:
    ada, _, [ann, ben, _] = await register_in_order(service, "ann", "ben", "cal")
    await ask_to_cancel(service, ben)
    await service.run_sql("update registrations set cancels_at = cancels_at + interval '1 hour'")
    await ask_to_cancel(service, ann)
    await service.run_sql("update registrations set cancels_at = now() where status = 'registered'")

    await own_cancellations.remove_cancelled(service.database)
    assert "You are passing your seat on." in page_text(await Visitor(service).http.get(ben))
    await service.complete_cancellations()

    assert await registration_statuses(ada) == {"cal": "registered"}


async def test_several_seats_of_one_event_go_to_the_waiting_list_in_order(service: Service) -> None:
    ada, event, addresses = await register_in_order(service, "ann", "ben", "cal", "dan", "eve", "fay", capacity=3)
    dan = addresses[3]  # waits, and is the first to cancel: no seat is passed on
    for address in (dan, *addresses[:3]):
        await ask_to_cancel(service, address)
    await service.run_sql("update registrations set cancels_at = cancels_at - interval '1 hour'")

    assert await own_cancellations.remove_cancelled(service.database) == 4

    assert await registration_statuses(ada) == {"eve": "registered", "fay": "registered"}
    assert (await ada.get(f"/api/events/{event['id']}")).json()["data"]["registration_count"] == 2
    pages = [page_text(await Visitor(service).http.get(address)) for address in addresses[:4]]
    assert ["Somebody who waited" in page for page in pages] == [True, True, False, False]
    assert "Your seat is free for others now." in pages[2]
    assert "Your registration is cancelled." in pages[3]


async def test_a_registration_removed_by_the_organizer_meanwhile_is_gone(service: Service) -> None:
    ada, event, [ann, ben] = await register_in_order(service, "ann", "ben")
    await ask_to_cancel(service, ann)
    user_id = ann.rpartition("/")[2].split("-")[1]
    await ada.delete(f"/api/registrations/{event['id']}/{user_id}")
    await ask_to_cancel(service, ben)
    await ada.delete(f"/api/events/{event['id']}")

    assert page_state(await Visitor(service).http.get(ann)) == "gone"
    assert "The event is cancelled." in page_text(await Visitor(service).http.get(ben))
    assert await service.complete_cancellations() == 1


async def test_a_rejection_ends_a_cancellation_that_waits(service: Service) -> None:
    await register_in_order(service, "ann")
    await service.run_sql("update registrations set cancels_at = now() + interval '1 hour'")

    await service.run_sql("update registrations set status = 'rejected', reason = 'no_show'")

    assert await service.run_sql("select status::text, cancels_at from registrations") == [("rejected", None)]


async def test_a_deadline_that_passes_meanwhile_changes_nothing(service: Service) -> None:
    ada, _, [ann, _] = await register_in_order(service, "ann", "ben")
    await ask_to_cancel(service, ann)
    await service.run_sql("update events set cancellation_hours = 2000000")

    assert "You are passing your seat on." in page_text(await Visitor(service).http.get(ann))
    await service.complete_cancellations()

    assert await registration_statuses(ada) == {"ben": "registered"}


async def test_a_locked_event_does_not_hold_up_the_seats_of_others(service: Service) -> None:
    ada, event, [ann, _] = await register_in_order(service, "ann", "ben")
    _, _, [cal, _] = await register_in_order(service, "cal", "dan")
    await ask_to_cancel(service, ann)
    await ask_to_cancel(service, cal)
    await service.run_sql("update registrations set cancels_at = now() where cancels_at is not null")

    async with service.database.pool.connection() as connection, connection.transaction():
        await connection.execute("select from events where id = %s for update", [event["id"]])
        assert await own_cancellations.remove_cancelled(service.database) == 1
    assert await own_cancellations.remove_cancelled(service.database) == 1
    assert await registration_statuses(ada) == {"ben": "registered"}


async def test_only_cancelling_counts_towards_the_limit_of_forms_and_undoing_does_not(limited_service: Service) -> None:
    _, _, [ann] = await register_in_order(limited_service, "ann")
    http = Visitor(limited_service, address="192.0.2.7").http
    token = field_value(await http.get(f"{ann}/cancel"), "token")

    answers = [
        (await http.post(f"{ann}/{path}", data={"token": token})).status_code
        for _ in range(3)
        for path in ("cancel", "undo")
    ]
    refusal = await http.post(f"{ann}/cancel", data={"token": token})

    assert answers == [303] * 6
    assert refusal.status_code == 429
    assert await limited_service.run_sql("select cancels_at from registrations") == [(None,)]


async def test_a_cancellation_is_forgotten_after_30_days(service: Service) -> None:
    _, _, [ann] = await register_in_order(service, "ann")
    await ask_to_cancel(service, ann)
    await service.complete_cancellations()

    assert await service.database.transact(own_cancellations.forget_own_cancellations) == 0
    await service.run_sql("update own_cancellations set cancelled_at = now() - interval '31 days'")
    assert await service.database.transact(own_cancellations.forget_own_cancellations) == 1

    assert page_state(await Visitor(service).http.get(ann)) == "gone"


@pytest.mark.parametrize("path", ["cancel", "undo"])
async def test_a_guessed_link_cancels_no_registration(service: Service, path: str) -> None:
    _, _, [ann] = await register_in_order(service, "ann")

    assert (await Visitor(service).http.post(f"{ann[:-1]}g/{path}")).status_code == 404


async def test_an_undo_that_races_with_the_handover_keeps_the_seat_or_comes_too_late(service: Service) -> None:
    ada = await service.organizer()
    event = await ada.create_event(capacity=10, waitinglist_capacity=20)
    people = [f"p{number:02}" for number in range(20)]
    addresses = await register_and_settle(service, ada, event, *people)
    for address in addresses[:10]:
        await ask_to_cancel(service, address)
    await service.run_sql("update registrations set cancels_at = now() where cancels_at is not null")

    pages, *_ = await asyncio.gather(
        asyncio.gather(*(undo(service, address) for address in addresses[:10])),
        own_cancellations.remove_cancelled(service.database),
        own_cancellations.remove_cancelled(service.database),
    )
    await service.complete_cancellations()

    keepers = {person for person, page in zip(people, pages, strict=False) if page_state(page) == "registered"}
    seated = {name for name, status in (await statuses_by_name(service)).items() if status == "registered"}
    assert keepers == seated & set(people[:10])
    assert len(seated) == 10
    assert seated - keepers == set(people[10 : 20 - len(keepers)])


async def statuses_by_name(service: Service) -> dict[str, str]:
    rows = await service.run_sql(
        "select split_part(email, '@', 1), status::text from registrations join users on users.id = user_id"
    )
    return dict(rows)


ACTIONS = st.lists(
    st.lists(
        st.one_of(
            st.tuples(st.sampled_from(["give up", "undo", "register"]), st.sampled_from("abcdef")),
            st.tuples(st.sampled_from(["remove", "raise capacity"]), st.just("")),
        ),
        min_size=1,
        max_size=5,
    ),
    min_size=1,
    max_size=5,
)


@hypothesis.settings(max_examples=8, suppress_health_check=[hypothesis.HealthCheck.function_scoped_fixture])
@hypothesis.given(rounds=ACTIONS)
async def test_concurrent_cancellations_never_lose_a_seat_or_give_it_twice(
    service: Service, rounds: list[list[tuple[str, str]]]
) -> None:
    """The actions of a round race with each other. All times to undo are over at once when `remove` runs."""
    ada = await service.organizer()
    event = await ada.create_event(capacity=2, waitinglist_capacity=6)
    visitor, number = Visitor(service), event["id"]
    for person in "abcdef":
        await visitor.register(number, f"{person}@{number}.example.com")
    await service.settle()
    links = {person: await own_path(service, number, f"{person}@{number}.example.com") for person in "abcdef"}
    capacity = 2

    async def act(action: str, person: str) -> str | None:
        if action == "give up":
            page = await visitor.http.get(f"{links[person]}/cancel")
            if 'name="token"' in page.text:
                await visitor.http.post(f"{links[person]}/cancel", data={"token": field_value(page, "token")})
        elif action == "undo":
            answer = await visitor.http.post(f"{links[person]}/undo")
            return person if answer.status_code == 303 else None
        elif action == "register":
            await visitor.send(number, email=f"{person}@{number}.example.com")
        elif action == "remove":
            await service.run_sql("update registrations set cancels_at = now() where cancels_at is not null")
            await own_cancellations.remove_cancelled(service.database)
        else:
            nonlocal capacity
            capacity += 1
            await ada.patch(f"/api/events/{number}", {"event": {"capacity": capacity}})
        return None

    for actions in rounds:
        keepers = {person for person in await asyncio.gather(*(act(*action) for action in actions)) if person}
        leavers = {person for action, person in actions if action == "give up"}
        await service.settle()
        rows = await service.run_sql(
            """
            select left(email, 1), status::text, cancels_at is not null
              from registrations join users on users.id = user_id
             where event_id = %(id)s order by received_at, arrival
            """,
            id=number,
        )
        seated = [person for person, status, _ in rows if status == "registered"]
        [(counted, waiting, places)] = await service.run_sql(
            "select registered_count, waitlisted_count, capacity from events where id = %(id)s", id=number
        )
        assert (counted, waiting) == (len(seated), sum(status == "waitlisted" for _, status, _ in rows))
        assert counted <= places
        assert counted == places or waiting == 0
        # A person who has undone the cancellation is still there, unless the same round asked once more.
        assert keepers - leavers <= {person for person, _, is_cancelling in rows if not is_cancelling}
        # The order is that of arrival: no guest waits before one who has a seat.
        assert [person for person, _, _ in rows][: len(seated)] == seated
    takers_statement = "select next_arrival from own_cancellations where event_id = %(id)s and next_arrival is not null"
    takers = [taker for (taker,) in await service.run_sql(takers_statement, id=number)]
    assert len(takers) == len(set(takers))
