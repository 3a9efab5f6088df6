"""Forms of many people are stored by one statement, and each gets its own answer."""

import asyncio
from typing import Any

import pytest

from holdfast.events.pages.registration.form_pages import SIGN_UP
from holdfast.events.registrations.sign_up import SignUp, SignUpResult, clean_name
from holdfast.kit.contract.caller import stranger
from holdfast.kit.contract.problems import Problem
from holdfast.kit.operations.runner import Runner
from tests.helpers.events_service import Service


async def sign_up(service: Service, *people: tuple[int, str], secret: str = "0" * 32) -> list[SignUpResult | str]:
    """Sign people up at the same time, with one secret. Returns the answer, or the code of the refusal, for each."""
    runner = Runner((SIGN_UP,), service.database)
    commands = [
        SignUp(event_id=event_id, email=email, name=None, language="en", secret=secret) for event_id, email in people
    ]
    answers: list[Any] = await asyncio.gather(
        *(runner.run_of(SIGN_UP)(stranger("address 192.0.2.1"), command) for command in commands),
        return_exceptions=True,
    )
    return [answer.code if isinstance(answer, Problem) else answer for answer in answers]


async def test_registrations_in_one_batch_get_answers_of_their_own(service: Service) -> None:
    ada = await service.organizer()
    free = await ada.create_event()
    paid = await ada.create_event(price=500, pricing_mode="fixed")
    cancelled = await ada.create_event()
    await ada.delete(f"/api/events/{cancelled['id']}")

    ann, again, refusal, gone, unknown, ben = await sign_up(
        service,
        (free["id"], "ann@example.com"),
        (free["id"], "ANN@example.com"),
        (paid["id"], "ann@example.com"),
        (cancelled["id"], "ann@example.com"),
        (4711, "ann@example.com"),
        (free["id"], "ben@example.com"),
    )

    assert isinstance(ann, SignUpResult)
    assert isinstance(ben, SignUpResult)
    assert (ann.is_from_form, again) == (True, ann)
    assert (refusal, gone, unknown) == ("payment_unavailable", "event_cancelled", "not_found")
    assert ann.link.arrival < ben.link.arrival
    assert await service.run_sql("select count(*) from registrations") == [(2,)]


async def test_a_batch_of_forms_for_events_with_a_price_stores_no_registrations(service: Service) -> None:
    ada = await service.organizer()
    paid = await ada.create_event(price=500, pricing_mode="fixed")

    assert {*await sign_up(service, *((paid["id"], f"x{number}@example.com") for number in range(20)))} == {
        "payment_unavailable"
    }
    assert await service.run_sql("select count(*) from users where role = 'user'") == [(0,)]


async def test_five_hundred_people_who_sign_up_at_once_have_links_of_their_own(service: Service) -> None:
    ada = await service.organizer()
    event = await ada.create_event(capacity=1_000)

    answers = await sign_up(service, *((event["id"], f"x{number}@example.com") for number in range(500)))

    links = {answer.link[1:] for answer in answers if isinstance(answer, SignUpResult)}
    assert len(links) == 500
    stored = await service.run_sql("select public_id, arrival from registrations join users on users.id = user_id")
    assert links == {*stored}
    assert await service.settle() == 500


async def test_the_secret_decides_whose_registration_it_is_and_the_time_whether_it_is_repeated(
    service: Service,
) -> None:
    ada = await service.organizer()
    event = await ada.create_event()
    [first] = await sign_up(service, (event["id"], "ann@example.com"))
    assert isinstance(first, SignUpResult)

    for seconds, is_repeated in ((50, False), (70, True), (7_000, True)):
        await service.run_sql(
            "update registrations set received_at = now() - %(seconds)s * interval '1 second'", seconds=seconds
        )
        for secret, is_from_form in (("0" * 32, True), ("1" * 32, False)):
            assert await sign_up(service, (event["id"], "ann@example.com"), secret=secret) == [
                SignUpResult(first.link, is_from_form, is_repeated)
            ]


@pytest.mark.parametrize("name", ["", " ", "\u200b", "\u202e\u2066", "\x00\x1f", "\u200d"])
def test_a_name_of_invisible_characters_is_no_name(name: str) -> None:
    assert clean_name(name) is None
