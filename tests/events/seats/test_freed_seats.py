"""A freed seat goes to the first on the waiting list, in the transaction that freed it."""

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.helpers.events_service import Client, Service


async def line(service: Service, ada: Client, names: str, **fields: Any) -> tuple[int, dict[str, str]]:
    """An event and the addresses of those who registered for it, by the letters of `names`; settled."""
    event = await ada.create_event(**fields)
    polls = {name: await ada.register(event["id"], email=f"{name}@example.com") for name in names}
    await service.settle()
    return event["id"], polls


async def statuses(ada: Client, polls: dict[str, str]) -> dict[str, str]:
    """Status or code of each."""
    answers = {name: (await ada.get(poll)).json() for name, poll in polls.items()}
    return {name: answer["data"]["status"] if "data" in answer else answer["code"] for name, answer in answers.items()}


async def test_deleting_a_seat_promotes_the_first_on_the_waiting_list(service: Service) -> None:
    ada = await service.organizer()
    _, polls = await line(service, ada, "abc", capacity=1, waitinglist_capacity=2)

    assert (await ada.delete(polls.pop("a"))).status_code == 204

    assert await statuses(ada, polls) == {"b": "registered", "c": "waitlisted"}


async def test_a_deleted_waiting_place_promotes_no_person(service: Service) -> None:
    ada = await service.organizer()
    _, polls = await line(service, ada, "abc", capacity=1, waitinglist_capacity=2)

    await ada.delete(polls.pop("b"))

    assert await statuses(ada, polls) == {"a": "registered", "c": "waitlisted"}


async def test_the_seat_of_a_person_moved_to_the_waiting_list_goes_to_the_next_person(service: Service) -> None:
    ada = await service.organizer()
    _, polls = await line(service, ada, "abc", capacity=1, waitinglist_capacity=2)

    moved = await ada.patch(polls["a"], {"registration": {"status": "waitlisted"}})

    assert moved.json()["data"]["status"] == "waitlisted"
    assert await statuses(ada, polls) == {"a": "waitlisted", "b": "registered", "c": "waitlisted"}


async def test_a_person_moved_to_the_waiting_list_stays_there_until_moved_back(service: Service) -> None:
    ada = await service.organizer()
    event_id, polls = await line(service, ada, "abc", capacity=2, waitinglist_capacity=2)

    await ada.patch(polls["a"], {"registration": {"status": "waitlisted"}})
    assert await statuses(ada, polls) == {"a": "waitlisted", "b": "registered", "c": "registered"}
    await ada.delete(polls.pop("b"))
    await ada.patch(f"/api/events/{event_id}", {"event": {"capacity": 3}})
    polls["d"] = await ada.register(event_id, email="d@example.com")
    await service.settle()
    assert await statuses(ada, polls) == {"a": "waitlisted", "c": "registered", "d": "registered"}

    await ada.patch(polls["a"], {"registration": {"status": "registered"}})
    assert await statuses(ada, polls) == {"a": "registered", "c": "registered", "d": "registered"}


async def test_a_person_who_registers_again_after_being_moved_waits_in_order_of_arrival(
    service: Service,
) -> None:
    ada = await service.organizer()
    event_id, polls = await line(service, ada, "ab", capacity=2, waitinglist_capacity=2)
    await ada.patch(polls["a"], {"registration": {"status": "waitlisted"}})
    await ada.delete(polls["a"])
    await ada.patch(f"/api/events/{event_id}", {"event": {"capacity": 1}})
    polls["a"] = await ada.register(event_id, email="a@example.com")
    await service.settle()
    assert await statuses(ada, polls) == {"a": "waitlisted", "b": "registered"}

    await ada.delete(polls.pop("b"))

    assert await statuses(ada, polls) == {"a": "registered"}


async def test_a_pending_registration_that_is_removed_frees_no_seat_for_a_moved_person(
    service: Service,
) -> None:
    ada = await service.organizer()
    event_id, polls = await line(service, ada, "ab", capacity=2, waitinglist_capacity=1)
    await ada.patch(polls["a"], {"registration": {"status": "waitlisted"}})
    pending = await ada.register(event_id, email="c@example.com")

    await ada.delete(pending)

    assert await statuses(ada, polls) == {"a": "waitlisted", "b": "registered"}


async def test_more_new_seats_than_waiting_people_seat_them_all(service: Service) -> None:
    ada = await service.organizer()
    event_id, polls = await line(service, ada, "abc", capacity=1, waitinglist_capacity=2)

    raised = await ada.patch(f"/api/events/{event_id}", {"event": {"capacity": 100}})

    assert (raised.json()["data"]["registration_count"], raised.json()["data"]["status"]) == (3, "active")
    assert set((await statuses(ada, polls)).values()) == {"registered"}


async def test_raising_capacity_promotes_as_many_as_there_are_new_seats_in_order(service: Service) -> None:
    ada = await service.organizer()
    event_id, polls = await line(service, ada, "abcd", capacity=1, waitinglist_capacity=3)

    raised = await ada.patch(f"/api/events/{event_id}", {"event": {"capacity": 3}})

    assert (raised.json()["data"]["registration_count"], raised.json()["data"]["status"]) == (3, "full")
    assert await statuses(ada, polls) == {"a": "registered", "b": "registered", "c": "registered", "d": "waitlisted"}


async def test_an_event_that_is_postponed_gives_the_seats_freed_before_to_its_waiting_list(service: Service) -> None:
    ada = await service.organizer()
    event_id, polls = await line(service, ada, "ab", capacity=1, waitinglist_capacity=1)
    await ada.patch(f"/api/events/{event_id}", {"event": {"datetime": "2020-01-01T00:00:00Z"}})
    await ada.delete(polls.pop("a"))
    assert await statuses(ada, polls) == {"b": "waitlisted"}

    await ada.patch(f"/api/events/{event_id}", {"event": {"datetime": "2090-01-01T00:00:00Z"}})

    assert await statuses(ada, polls) == {"b": "registered"}


async def test_seats_added_to_a_past_event_go_to_its_waiting_list_once_it_is_postponed(
    service: Service,
) -> None:
    ada = await service.organizer()
    event_id, polls = await line(service, ada, "ab", capacity=1, waitinglist_capacity=1)
    await ada.patch(f"/api/events/{event_id}", {"event": {"datetime": "2020-01-01T00:00:00Z"}})
    await ada.patch(f"/api/events/{event_id}", {"event": {"capacity": 2}})
    assert await statuses(ada, polls) == {"a": "registered", "b": "waitlisted"}

    await ada.patch(f"/api/events/{event_id}", {"event": {"datetime": "2090-01-01T00:00:00Z"}})

    assert await statuses(ada, polls) == {"a": "registered", "b": "registered"}


async def test_moving_a_person_up_beyond_capacity_is_refused(service: Service) -> None:
    ada = await service.organizer()
    _, polls = await line(service, ada, "ab", capacity=1, waitinglist_capacity=1)

    refusal = await ada.patch(polls["b"], {"registration": {"status": "registered", "amount_paid": 5}})

    assert (refusal.status_code, refusal.json()["code"]) == (422, "event_full")
    assert (await ada.get(polls["b"])).json()["data"]["amount_paid"] == 0


async def test_capacity_cannot_fall_below_the_seats_taken(service: Service) -> None:
    ada = await service.organizer()
    event_id, _ = await line(service, ada, "ab", capacity=3)

    refusal = await ada.patch(f"/api/events/{event_id}", {"event": {"capacity": 1}})

    assert (refusal.status_code, list(refusal.json()["errors"])) == (422, ["capacity"])
    assert (await ada.patch(f"/api/events/{event_id}", {"event": {"capacity": 2}})).status_code == 200


async def test_a_cancelled_event_promotes_no_person(service: Service) -> None:
    ada = await service.organizer()
    event_id, polls = await line(service, ada, "ab", capacity=1, waitinglist_capacity=1)
    await ada.delete(f"/api/events/{event_id}")

    await ada.delete(polls.pop("a"))

    assert await statuses(ada, polls) == {"b": "waitlisted"}


async def test_a_registration_removed_before_settlement_takes_no_seat(service: Service) -> None:
    ada = await service.organizer()
    event = await ada.create_event(capacity=1)
    gone, stays = [await ada.register(event["id"], email=f"{name}@example.com") for name in "ab"]

    assert (await ada.delete(gone)).status_code == 204
    await service.settle()

    assert await statuses(ada, {"gone": gone, "stays": stays}) == {"gone": "not_found", "stays": "registered"}


async def test_a_pending_registration_cannot_be_changed_yet(service: Service) -> None:
    ada = await service.organizer()
    event = await ada.create_event()
    poll = await ada.register(event["id"], email="ann@example.com")

    refusal = await ada.patch(poll, {"registration": {"amount_paid": 1}})

    assert (refusal.status_code, refusal.json()["code"]) == (404, "registration_pending")
    assert refusal.headers["retry-after"] == "1"


@pytest.mark.parametrize(
    "statement", ["update registrations set status = 'registered'", "update events set capacity = 1"]
)
async def test_the_schema_refuses_more_seats_than_capacity(service: Service, statement: str) -> None:
    ada = await service.organizer()
    await line(service, ada, "abcd", capacity=2, waitinglist_capacity=2)

    with pytest.raises(Exception, match="no_more_seats_than_capacity"):
        await service.run_sql(statement)


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("register"), st.sampled_from("abcdefgh")),
        st.tuples(st.just("delete"), st.sampled_from("abcdefgh")),
        st.tuples(st.just("waitlist"), st.sampled_from("abcdefgh")),
        st.tuples(st.just("seat"), st.sampled_from("abcdefgh")),
        st.tuples(st.just("capacity"), st.integers(1, 6)),
        st.tuples(st.just("settle"), st.none()),
    ),
    max_size=30,
)


@settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=STEPS)
async def test_seats_are_never_oversold_nor_left_free_while_an_unmoved_person_waits(
    service: Service, steps: Sequence[tuple[str, Any]]
) -> None:
    ada = await service.organizer()
    event = await ada.create_event(capacity=2, waitinglist_capacity=3)
    address = f"/api/events/{event['id']}"
    polls: dict[str, str] = {}
    moved: set[str] = set()
    for step, value in steps:
        match step:
            case "register":
                body = {"registration": {"event_id": event["id"], "email": f"{value}@example.com"}}
                answer = await ada.post("/api/registrations", body)
                if answer.status_code == 202:
                    polls[value] = answer.json()["next"]["url"]
            case "delete" if value in polls:
                await ada.delete(polls[value])
                moved.discard(value)
            case "waitlist" if value in polls:
                await ada.patch(polls[value], {"registration": {"status": "waitlisted"}})
                moved.add(value)
            case "seat" if value in polls:
                if (await ada.patch(polls[value], {"registration": {"status": "registered"}})).status_code == 200:
                    moved.discard(value)
            case "capacity":
                await ada.patch(address, {"event": {"capacity": value}})
            case "settle":
                await service.settle()
            case _:
                pass
        counted = await service.run_sql(
            "select count(*) filter (where status = 'registered'), count(*) filter (where status = 'waitlisted')"
            "  from registrations where event_id = %(id)s",
            id=event["id"],
        )
        stored = await service.run_sql(
            "select registered_count, waitlisted_count, capacity from events where id = %(id)s", id=event["id"]
        )
        registered, waiting, capacity = stored[0]
        assert (registered, waiting) == counted[0]
        assert registered <= capacity
        waits = {name for name, status in (await statuses(ada, polls)).items() if status == "waitlisted"}
        assert registered == capacity or waits <= moved
