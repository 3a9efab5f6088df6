"""The outcome of a form is for the browser that sent it. All others are told only that the address is registered
already.
"""

import asyncio
import re
from collections.abc import Awaitable, Callable

import httpx2
import pytest

from tests.events.draws.event_scene import opening_event
from tests.helpers.event_visitor import Visitor, field_value, page_state, page_text
from tests.helpers.events_service import Service
from tests.helpers.payments import PaymentScene

ANN = "ann@example.com"
Prepare = Callable[[Service], Awaitable[int]]


def assert_tells_nothing(answer: httpx2.Response) -> None:
    """The page says that the address is registered, and leads to nothing of the registration."""
    assert (answer.status_code, page_state(answer)) == (200, "known"), answer.text
    assert "This address is already registered." in page_text(answer)
    assert "location" not in answer.headers
    assert not re.search(r"/registrations/|receipt|class=\"code\"|<svg[^>]*qr", answer.text)


async def with_a_seat(service: Service) -> int:
    return (await (await service.organizer()).create_event(capacity=3))["id"]


async def on_the_waiting_list(service: Service) -> int:
    ada = await service.organizer()
    event = await ada.create_event(capacity=1, waitinglist_capacity=5)
    await ada.register(event["id"], email="first@example.com")
    await service.settle()
    return event["id"]


@pytest.mark.parametrize("settled", [True, False])
@pytest.mark.parametrize("prepare", [with_a_seat, on_the_waiting_list])
@pytest.mark.parametrize("framed", [True, False])
async def test_an_address_sent_from_another_browser_shows_only_that_it_is_registered(
    service: Service, framed: bool, prepare: Prepare, settled: bool
) -> None:
    event_id = await prepare(service)
    ann = Visitor(service, framed=framed)
    outcome = await ann.register(event_id, ANN)
    if settled:
        await service.settle()

    for stranger in (Visitor(service, framed=True), Visitor(service, framed=False), Visitor(service, scripts=False)):
        assert_tells_nothing(await stranger.send(event_id, email=ANN))
    assert (await ann.send(event_id, email=ANN)).headers["location"] == outcome


@pytest.mark.parametrize("spelling", ["ANN@example.com", " ann@EXAMPLE.com ", "ann@example.com"])
async def test_a_stranger_with_the_same_form_token_learns_no_outcome(service: Service, spelling: str) -> None:
    event_id = await with_a_seat(service)
    ann, stranger = Visitor(service), Visitor(service)
    token = field_value(await ann.open(event_id), "token")
    await ann.post(event_id, token=token, email=ANN)

    assert_tells_nothing(await stranger.post(event_id, token=token, email=spelling))


@pytest.mark.parametrize("secret", ["", "0", "x" * 32, "0" * 31, "0" * 33, "A" * 32, "\u0660" * 32])
async def test_a_malformed_secret_identifies_no_browser(service: Service, secret: str) -> None:
    event_id = await with_a_seat(service)
    ann, again = Visitor(service), Visitor(service)
    ann.secret = again.secret = secret

    await ann.register(event_id, ANN)

    assert_tells_nothing(await again.send(event_id, email=ANN))


async def test_the_first_answer_without_scripts_has_the_outcome_and_the_second_has_not(service: Service) -> None:
    event_id = await with_a_seat(service)
    visitor = Visitor(service, scripts=False)
    outcome = await visitor.register(event_id, ANN)
    await service.settle()

    assert page_state(await visitor.http.get(outcome)) == "registered"  # also when it is loaded again
    assert_tells_nothing(await visitor.send(event_id, email=ANN))


@pytest.mark.parametrize("scripts", [True, False])
async def test_a_double_click_on_a_form_that_was_shown_again_shows_the_outcome(service: Service, scripts: bool) -> None:
    event_id = await with_a_seat(service)
    visitor = Visitor(service, scripts=scripts)
    second_form = await visitor.send(event_id, email="no address")
    fields = {name: field_value(second_form, name) for name in ("token", "form_secret")}

    answers = await asyncio.gather(*(visitor.post(event_id, **fields, email=ANN) for _ in range(3)))

    assert [answer.status_code for answer in answers] == [303, 303, 303]
    assert len({answer.headers["location"] for answer in answers}) == 1


async def test_an_address_sent_by_several_browsers_at_once_shows_its_outcome_to_one(service: Service) -> None:
    event_id = await with_a_seat(service)
    visitors = [Visitor(service, scripts=number % 2 == 0) for number in range(8)]
    token = field_value(await visitors[0].open(event_id), "token")

    answers = await asyncio.gather(*(visitor.post(event_id, token=token, email=ANN) for visitor in visitors))

    assert sorted(answer.status_code for answer in answers) == [200] * 7 + [303]


async def test_a_registration_made_by_the_organizer_is_shown_to_no_browser(service: Service) -> None:
    ada = await service.organizer()
    event = await ada.create_event()
    await ada.register(event["id"], email=ANN)

    assert_tells_nothing(await Visitor(service).send(event["id"], email=ANN))


async def test_a_held_seat_and_its_payment_are_shown_to_the_browser_that_took_it(payment_scene: PaymentScene) -> None:
    event_id = await payment_scene.event(await payment_scene.organizer(), capacity=1, waitinglist_capacity=2)
    ann = await payment_scene.register(event_id, ANN)
    ben = await payment_scene.register(event_id, "ben@example.com")
    assert page_state(await ann.visitor.http.get(ann.path)) == "held"

    for email in (ANN, "ben@example.com"):
        assert_tells_nothing(await Visitor(payment_scene.service).send(event_id, email=email))
    await payment_scene.time_is_up()  # Ann's seat is offered to Ben
    assert page_state(await ben.visitor.http.get(ben.path)) == "held"
    assert_tells_nothing(await Visitor(payment_scene.service).send(event_id, email="ben@example.com"))


async def test_the_entry_of_a_draw_is_shown_to_the_browser_that_sent_it(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with opening_event(service, monkeypatch, capacity=3) as draw:
        ann = Visitor(service)
        outcome = await ann.register(draw.event["id"], ANN)
        await service.settle()

        assert page_state(await ann.http.get(outcome)) == "in_draw"
        assert_tells_nothing(await Visitor(service).send(draw.event["id"], email=ANN))


async def test_a_registration_after_a_rejection_takes_the_outcome_from_the_earlier_browser(
    service: Service,
) -> None:
    ada = await service.organizer()
    event = await ada.create_event(capacity=1)
    ann, other = Visitor(service), Visitor(service)
    await Visitor(service).register(event["id"], "first@example.com")
    refusal = await ann.register(event["id"], ANN)
    await service.settle()
    await ada.patch(f"/api/events/{event['id']}", {"event": {"capacity": 3}})

    await other.register(event["id"], ANN)
    await service.settle()

    assert (await ann.http.get(refusal)).status_code == 410
    assert_tells_nothing(await ann.send(event["id"], email=ANN))


async def test_the_stored_digest_is_refused_as_a_secret(service: Service) -> None:
    event_id = await with_a_seat(service)
    await Visitor(service).register(event_id, ANN)
    [(digest,)] = await service.run_sql("select replace(form_digest::text, '-', '') from registrations")
    thief = Visitor(service)
    thief.secret = str(digest)

    assert_tells_nothing(await thief.send(event_id, email=ANN))
