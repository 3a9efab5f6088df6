"""An organizer registered with another person's address is exported and erased with that address."""

import asyncio

import msgspec
import pytest

from holdfast.events import ownership
from holdfast.events.ownership import CancelEventsArguments
from holdfast.events.people import operations
from holdfast.events.people.model import Erasure
from holdfast.kit.contract.problems import Problem
from holdfast.kit.operations.steps import Steps
from tests.events.pages.own_data import OwnDataReader
from tests.helpers.event_visitor import page_text
from tests.helpers.events_service import Client, Service
from tests.helpers.form_browser import Browser, token
from tests.helpers.people import ANN, erase, export_person, list_registrations, read_all_text, sign_up

EMAIL = "ann@example.com"
PASSWORD = "correct horse battery"


async def register_stranger(service: Service, **fields: str) -> Client:
    """A stranger's organizer with Ann's address."""
    return await service.organizer("Planted Bank", is_proved=False, email=EMAIL, slug="planted-bank", **fields)


async def preview(service: Service) -> Erasure:
    return await service.database.read(lambda reader: operations.preview(reader, ANN))


async def test_a_person_is_exported_with_the_organizer_registered_with_their_address(service: Service) -> None:
    ada = await service.organizer()
    await sign_up(service, await ada.create_event(), "ann")
    stranger = await register_stranger(service, password=PASSWORD)
    event = await stranger.create_event(title="Free money")

    exported = await export_person(service)

    assert exported.account
    assert [registration.event for registration in exported.registrations] == ["Life drawing"]
    organizer = exported.unconfirmed_organizer
    assert organizer
    assert (organizer.name, organizer.slug, organizer.has_password) == ("Planted Bank", "planted-bank", True)
    assert organizer.keys == ["First key"]
    assert [(event.id, event.title) for event in organizer.events] == [(event["id"], "Free money")]
    assert b"hash" not in msgspec.json.encode(exported)


async def test_an_address_that_only_an_unproved_organizer_has_is_exported_and_erased(service: Service) -> None:
    await register_stranger(service)

    exported, ahead, done = await export_person(service), await preview(service), await erase(service)

    assert exported.account is None
    assert exported.unconfirmed_organizer
    assert (ahead, done) == (Erasure(None, [], 0, 0, "planted-bank"),) * 2
    after = await read_all_text(service)
    assert EMAIL not in after
    assert "planted-bank" not in after
    with pytest.raises(Problem) as refusal:
        await erase(service)
    assert refusal.value.status == 404


async def test_erasing_a_person_ends_the_organizer_that_a_stranger_made_with_the_address(service: Service) -> None:
    ada = await service.organizer()
    event = await ada.create_event(capacity=1, waitinglist_capacity=5)
    await sign_up(service, event, "ann", "bob")
    stranger = await register_stranger(service, password=PASSWORD)
    await sign_up(service, await stranger.create_event(title="Free money"), "bob")
    ahead = await preview(service)

    done = await erase(service)
    await ownership.cancel_events(Steps(service.database), CancelEventsArguments(stranger.id))
    await service.wait_for_notices()

    assert ahead == done
    assert (done.organizer, [registration.event_id for registration in done.cancelled]) == (
        "planted-bank",
        [event["id"]],
    )
    assert EMAIL not in await read_all_text(service)
    assert [
        (registration["email"], registration["status"]) for registration in await list_registrations(ada, event)
    ] == [("bob@example.com", "registered")]
    assert (await stranger.get("/api/events")).status_code == 401
    assert (await service.http.get("/organizers/planted-bank")).status_code == 404
    assert await service.run_sql("select cancelled_at is not null from events order by id") == [(False,), (True,)]
    assert (await Browser(service).send("/sign-in", email=EMAIL, password=PASSWORD)).status_code == 422
    # Any person can take the address again.
    await service.organizer(email=EMAIL)


async def test_an_access_token_that_acts_for_the_organizer_does_so_no_more(service: Service) -> None:
    stranger = await register_stranger(service)
    await service.run_sql(
        """
        insert into oauth_subjects (hash, issuer, subject, user_id, email)
        values (sha256(convert_to(e'https://issuer.example\\nann', 'UTF8')), 'https://issuer.example', 'ann', %(id)s,
                'ann@example.com')
        """,
        id=stranger.id,
    )

    await erase(service)

    assert await service.run_sql("select user_id, email from oauth_subjects") == [(None, None)]


async def test_a_person_just_signed_in_by_mail_reaches_the_data_before_saying_whose_the_organizer_is(
    service: Service,
) -> None:
    ada = await service.organizer()
    await sign_up(service, await ada.create_event(), "ann")
    await register_stranger(service)
    ann = Browser(service)
    await ann.sign_in(EMAIL)

    led = await ann.send("/account/data")
    page = OwnDataReader(service, led.headers["location"])
    await page.open()
    file = await page.press("export")
    question = await page.press("erase")
    await page.press("erase", confirmed="yes")

    exported = file.json()
    assert exported["account"]["email"] == EMAIL
    assert exported["unconfirmed_organizer"]["slug"] == "planted-bank"
    assert "The organizer /organizers/planted-bank ends" in page_text(question)
    assert EMAIL not in await read_all_text(service)
    assert not await ann.is_signed_in()


async def test_a_person_signed_in_by_password_gets_no_data_of_the_owner_of_the_address(service: Service) -> None:
    ada = await service.organizer()
    await sign_up(service, await ada.create_event(), "ann")
    await register_stranger(service, password=PASSWORD)
    stranger = Browser(service)
    await stranger.send("/sign-in", email=EMAIL, password=PASSWORD)
    form = await stranger.get("/console/agents")

    answers = [
        await stranger.get("/account/data"),
        await stranger.http.post("/account/data", data={"token": token(form)}),
    ]

    assert [answer.status_code for answer in answers] == [403, 403]
    assert await service.run_sql("select from users where data_link_at is not null") == []


async def test_an_erasure_and_the_answer_mine_at_once_do_one_of_both(service: Service) -> None:
    ada = await service.organizer()
    event = await ada.create_event()
    await sign_up(service, event, "ann")
    studio = await register_stranger(service)
    ann = Browser(service)
    await ann.sign_in(EMAIL)
    form = await ann.get("/console/before")

    async def try_to_erase() -> int:
        try:
            await service.database.transact(lambda tx: ownership.erase(tx, ANN))
        except Problem as problem:
            return problem.status
        return 200

    erased, _ = await asyncio.gather(
        try_to_erase(), ann.http.post("/console/before", data={"token": token(form), "whose": "mine"})
    )

    seats = [registration["email"] for registration in await list_registrations(ada, event)]
    works = (await studio.get("/api/events")).status_code
    assert (erased, seats, works) in [(403, [EMAIL], 200), (200, [], 401)]
