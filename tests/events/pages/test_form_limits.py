"""Limits of the registration form: what exceeds them is refused with a page, and stores nothing."""

from collections.abc import AsyncIterator

import pytest

from holdfast.events.settings import Settings
from tests.helpers.event_visitor import Visitor, field_value, page_state, page_text
from tests.helpers.events_service import Service, running_events
from tests.helpers.locked_rows import hold_locks


@pytest.fixture
async def limited_service(settings: Settings) -> AsyncIterator[Service]:
    limits = {"forms_per_minute": 20, "forms_per_event": 50, "forms_share": 5, "wrong_links_per_minute": 5}
    async with running_events(settings.model_copy(update=limits)) as service:
        yield service


async def test_an_address_that_sends_a_thousand_forms_is_refused_and_others_are_not(limited_service: Service) -> None:
    event = await (await limited_service.organizer()).create_event(capacity=2_000)
    program, person = Visitor(limited_service, address="203.0.113.7"), Visitor(limited_service, address="203.0.113.8")
    token = field_value(await program.open(event["id"]), "token")

    answers = [
        await program.post(event["id"], token=token, email=f"x{number}@example.com", name="X")
        for number in range(1_000)
    ]

    assert [answer.status_code for answer in answers] == [303] * 20 + [429] * 980
    last = answers[-1]
    assert 1 <= int(last.headers["retry-after"]) <= 60
    assert f"please send it again in {last.headers['retry-after']} second" in page_text(last)
    assert (field_value(last, "email"), field_value(last, "name")) == ("x999@example.com", "X")
    assert (await person.send(event["id"], email="ann@example.com")).status_code == 303
    assert await limited_service.run_sql("select count(*) from registrations") == [(21,)]


async def test_invalid_forms_count_towards_the_limit(limited_service: Service) -> None:
    event = await (await limited_service.organizer()).create_event()
    visitor = Visitor(limited_service)

    statuses = [(await visitor.post(event["id"], email="x")).status_code for _ in range(25)]

    assert statuses == [403] * 20 + [429] * 5


async def test_opening_the_form_is_not_limited(limited_service: Service) -> None:
    event = await (await limited_service.organizer()).create_event()
    visitor = Visitor(limited_service)

    assert {(await visitor.open(event["id"])).status_code for _ in range(60)} == {200}


async def test_forms_from_many_addresses_for_one_mailbox_lock_out_no_other_mailbox(limited_service: Service) -> None:
    event = await (await limited_service.organizer()).create_event()
    programs = [Visitor(limited_service, address=f"203.0.113.{number}") for number in range(5)]

    for program in programs:
        token = field_value(await program.open(event["id"]), "token")
        for _ in range(20):
            await program.post(event["id"], token=token, email="x@example.com")
    people = [Visitor(limited_service, address=f"198.51.100.{number}") for number in range(3)]
    answers = [await person.send(event["id"], email=f"{number}@example.com") for number, person in enumerate(people)]

    assert [answer.status_code for answer in answers] == [303] * 3
    # Nor did the repeated forms use up what the addresses may send together above their shares.
    assert (await forms(limited_service, event["id"], "192.0.2.1", 20)).count(303) == 20


async def test_a_crowd_uses_up_the_shared_limit_of_forms_and_every_other_address_has_a_share(
    limited_service: Service,
) -> None:
    ada = await limited_service.organizer()
    crowded, quiet = await ada.create_event(capacity=500), await ada.create_event()

    crowd = [await forms(limited_service, crowded["id"], f"203.0.113.{number}", 20) for number in range(5)]
    person = Visitor(limited_service, address="198.51.100.1")
    last = [await person.send(crowded["id"], email=f"ann{number}@example.com") for number in range(6)]

    # Each address may send five, and all together 50 more.
    assert sum(statuses.count(303) for statuses in crowd) == 5 * 5 + 50
    assert [answer.status_code for answer in last] == [303] * 5 + [429]
    assert page_state(last[-1]) == "open"
    assert "Too many forms are being sent." in page_text(last[-1])
    assert (await forms(limited_service, quiet["id"], "198.51.100.2", 20)).count(303) == 20


async def test_a_large_network_has_one_share_of_the_forms_for_all_its_parts(limited_service: Service) -> None:
    event = await (await limited_service.organizer()).create_event(capacity=5_000)

    crowd = [await forms(limited_service, event["id"], f"2001:db8:1:{number:x}::1", 10) for number in range(32)]

    # 16 times the share of a small network, and 50 more.
    assert sum(statuses.count(303) for statuses in crowd) == 16 * 5 + 50
    assert set(await forms(limited_service, event["id"], "2001:db8:2::1", 5)) == {303}


async def forms(service: Service, event_id: int, address: str, times: int) -> list[int]:
    """The statuses of forms from one address, each with an e-mail address of its own."""
    visitor = Visitor(service, address=address)
    token = field_value(await visitor.open(event_id), "token")
    name = address.replace(":", "-")
    return [
        (await visitor.post(event_id, token=token, email=f"{name}.{number}@example.com")).status_code
        for number in range(times)
    ]


@pytest.mark.parametrize("path", ["", "/outcome", "/outcome/embed", "/cancel", "/unsubscribe"])
async def test_an_address_that_guesses_links_is_refused_with_429(limited_service: Service, path: str) -> None:
    http = Visitor(limited_service).http

    pages = [await http.get(f"/registrations/1-abcdefgh-1-{'0' * 31}{number}{path}") for number in range(8)]

    assert [page.status_code for page in pages] == [404] * 5 + [429] * 3
    assert {page.headers["content-type"] for page in pages} == {"text/html; charset=utf-8"}


async def test_a_form_that_cannot_be_stored_just_now_is_shown_again_with_what_was_typed(
    limited_service: Service,
) -> None:
    event = await (await limited_service.organizer()).create_event()
    visitor = Visitor(limited_service)
    creation = "insert into users (public_id, email) values ('abcdefgh', 'ann@example.com')"

    async with hold_locks(limited_service.database.url, creation):
        busy = await visitor.send(event["id"], email="ann@example.com", name="Ann")

    assert (busy.status_code, busy.headers["retry-after"]) == (503, "1")
    assert "could not store your registration" in page_text(busy)
    # A browser sends it again by itself; without scripts the button does.
    assert 'data-again="1"' in busy.text
    assert "send_again" in busy.text
    again = {name: field_value(busy, name) for name in ("token", "email", "name")}
    assert (await visitor.post(event["id"], **again)).status_code == 303


async def test_the_form_of_registration_without_a_database_asks_to_try_again(limited_service: Service) -> None:
    event = await (await limited_service.organizer()).create_event()
    visitor = Visitor(limited_service)
    token = field_value(await visitor.open(event["id"]), "token")
    await limited_service.database.pool.close()

    page = await visitor.post(event["id"], token=token, email="ann@example.com")

    assert page.status_code == 503
    assert "Traceback" not in page.text
