"""An organizer whose address is not proved is kept apart from the person with the same address, until the owner of
the address says that the organizer is theirs. So no caller stands in another person's way by registering their address.
"""

import asyncio
from typing import Any

import httpx2
import pytest

from tests.events.pages.own_registration import own_path
from tests.helpers.event_visitor import Visitor, page_state
from tests.helpers.events_service import Client, Service, running_events
from tests.helpers.form_browser import Browser, token
from tests.helpers.locked_rows import hold_locks
from tests.helpers.people import list_registrations, sign_up

ANN = "ann@example.com"
REGISTER = "/api/organizers/register"


async def register(service: Service, email: str, slug: str) -> httpx2.Response:
    return await service.anonymous.post(
        REGISTER, {"organizer": {"name": f"Events of {slug}", "email": email, "slug": slug}}
    )


async def handle(service: Service, organizer: Client) -> str:
    """The public id of an organizer."""
    [(public_id,)] = await service.run_sql("select public_id from users where id = %(id)s", id=organizer.id)
    return public_id


# Registering


async def test_an_address_with_registrations_can_become_an_organizer(service: Service) -> None:
    ada = await service.organizer()
    event = await ada.create_event()
    poll = await ada.register(event["id"], email=ANN)
    await service.settle()

    registered = await register(service, "Ann@Example.com", "ann-events")

    assert registered.status_code == 201
    assert registered.json()["data"]["organizer"]["email"] == ANN
    seat = (await ada.get(poll)).json()["data"]
    assert (seat["status"], seat["email"], seat["name"]) == ("registered", ANN, None)
    assert [(user["email"], user["role"]) for user in (await ada.get("/api/users")).json()["data"]][1:] == [
        (ANN, "user")
    ]


async def test_an_address_that_has_signed_in_can_become_an_organizer_over_the_api(service: Service) -> None:
    await Browser(service).sign_in(ANN)

    assert (await register(service, ANN, "ann-events")).status_code == 201


@pytest.mark.parametrize("is_proved", [True, False])
async def test_an_address_that_an_organizer_has_is_refused_as_taken(service: Service, is_proved: bool) -> None:
    await service.organizer(email=ANN, is_proved=is_proved)

    refusal = await register(service, "ANN@example.com", "second")

    assert (refusal.status_code, refusal.json()["code"]) == (422, "validation_failed")
    assert refusal.json()["errors"] == {"email": ["is already taken"]}


async def test_an_address_being_registered_by_another_transaction_is_refused_as_taken(service: Service) -> None:
    first = """
        insert into users (public_id, name, email, slug, role)
        values ('aaaaaaaa', 'First', 'ann@example.com', 'first', 'organizer')
    """
    async with hold_locks(service.database.url, first) as other:
        second = asyncio.create_task(register(service, ANN, "first"))
        await other.wait_for_waiters()
        await other.commit()

    refusal = await second
    assert refusal.status_code == 422
    assert refusal.json()["errors"] == {"email": ["is already taken"], "slug": ["is already taken"]}


async def test_concurrent_organizers_with_one_address_register_only_one(service: Service) -> None:
    async with running_events(service.database.resources.settings) as another:
        statuses = [
            response.status_code
            for response in await asyncio.gather(
                *(register((service, another)[number % 2], ANN, f"ann-{number}") for number in range(8))
            )
        ]

    assert sorted(statuses) == [201, *[422] * 7]


# Kept apart


async def test_a_person_registered_with_the_address_of_an_unproved_organizer_is_another_account(
    service: Service,
) -> None:
    stranger = await service.organizer("Stranger", email=ANN, is_proved=False)
    ada = await service.organizer()
    event = await ada.create_event()

    await ada.register(event["id"], email=ANN)
    await Visitor(service).send(event["id"], email=ANN, name="Ann Example")
    await service.settle()

    [seat] = await list_registrations(ada, event)
    assert (seat["email"], seat["name"]) == (ANN, None)
    assert seat["user_id"] != await handle(service, stranger)
    [_, person] = (await ada.get("/api/users")).json()["data"]
    assert (person["email"], person["role"], person["id"] != stranger.id) == (ANN, "user", True)


async def test_the_handle_of_an_unproved_organizer_cannot_be_registered(service: Service) -> None:
    ann = await service.organizer(email=ANN, is_proved=False)
    body = {"registration": {"event_id": (await ann.create_event())["id"], "user_id": await handle(service, ann)}}

    refusal = await ann.post("/api/registrations", body)
    await service.run_sql("update users set proved_at = now()")
    accepted = await ann.post("/api/registrations", body)

    assert (refusal.status_code, [*refusal.json()["errors"]]) == (422, ["user_id"])
    assert accepted.status_code == 202


async def test_a_password_of_an_unproved_organizer_opens_no_data_of_the_person(service: Service) -> None:
    ada = await service.organizer()
    await sign_up(service, await ada.create_event(), "ann")
    await service.organizer("Stranger", email=ANN, password="correct horse battery", is_proved=False)
    stranger = Browser(service)

    await stranger.send("/sign-in", email=ANN, password="correct horse battery")

    assert (await stranger.get("/console")).status_code == 200
    assert (await service.run_sql("select role from users join sessions on account_id = users.id")) == [("organizer",)]


async def test_a_person_with_an_unanswered_question_cannot_become_a_second_organizer(service: Service) -> None:
    ann = Browser(service)
    await ann.sign_in(ANN)
    await service.organizer("Stranger", email=ANN, is_proved=False)

    refusal = await ann.send("/console/start", name="Ann Events", slug="ann-events")

    assert refusal.status_code == 422
    assert "your address has an organizer; sign out, sign in with a link" in refusal.text
    await ann.send("/account", "/sign-out")
    await ann.sign_in(ANN)
    assert (await ann.get("/console")).headers["location"].startswith("/console/before")


@pytest.mark.parametrize(
    ("identity", "message"),
    [
        ({"email": "other@example.com", "slug": "ann-events"}, "is already taken"),
        ({"email": ANN, "slug": "planted"}, "your address has an organizer; sign out, sign in with a link"),
    ],
)
async def test_a_new_organizer_whose_slug_or_address_is_taken_meanwhile_reads_so(
    service: Service, identity: dict[str, str], message: str
) -> None:
    ann = Browser(service)
    await ann.sign_in(ANN)
    other = """
        insert into users (public_id, name, email, slug, role)
        values ('aaaaaaaa', 'Other', %(email)s, %(slug)s, 'organizer')
    """

    async with hold_locks(service.database.url, other, **identity) as registering:
        becoming = asyncio.create_task(ann.send("/console/start", name="Ann Events", slug="ann-events"))
        await registering.wait_for_waiters()
        await registering.commit()

    refusal = await becoming
    assert (refusal.status_code, message in refusal.text) == (422, True)


# Joined


async def test_an_owner_who_says_mine_has_the_organizer_and_the_registrations_in_one_account(service: Service) -> None:
    ada = await service.organizer()
    event = await ada.create_event(capacity=1, waitinglist_capacity=5)
    await sign_up(service, event, "ann", "bob")
    page = await own_path(service, event["id"], ANN)
    poll = await ada.register(event["id"], email=ANN)
    mails = await service.run_sql("select kind, recipient from mails")
    before = await list_registrations(ada, event)
    signed_in_before = Browser(service)
    await signed_in_before.sign_in(ANN)
    studio = await service.organizer("Ann Events", email=ANN, is_proved=False)
    published = await studio.create_event()

    ann = Browser(service)
    await ann.sign_in(ANN)
    await ann.send("/console/before", whose="mine")

    # The organizer: its key, its number, its events.
    assert (await ann.get("/console")).status_code == 200
    assert [event["id"] for event in (await studio.get("/api/events")).json()["data"]] == [published["id"]]
    [organizer] = (await studio.get("/api/organizers")).json()["data"]
    assert (organizer["id"], organizer["email"], organizer["slug"]) == (studio.id, ANN, studio.slug)
    # The person: the address to poll, the link in the mails, the sessions; nothing is told or counted again.
    assert (await ada.get(poll)).json()["data"]["user_id"] == organizer["public_id"]
    assert await list_registrations(ada, event) == before
    assert page_state(await Visitor(service).http.get(page)) == "registered"
    assert await signed_in_before.is_signed_in()
    assert (await signed_in_before.get("/console")).status_code == 200
    assert await service.run_sql("select kind, recipient from mails where kind <> 'sign_in'") == mails
    assert await service.run_sql("select registered_count, waitlisted_count from events where id = 1") == [(1, 1)]
    assert await service.run_sql("select id from users where email = 'ann@example.com'") == [(studio.id,)]
    # Registering the address again changes nothing.
    assert await ada.register(event["id"], email=ANN) == poll


async def test_an_organizer_joined_without_registrations_keeps_its_handle(service: Service) -> None:
    studio = await service.organizer("Ann Events", email=ANN, is_proved=False)
    before = await handle(service, studio)
    ann = Browser(service)
    await ann.sign_in(ANN)

    await ann.send("/console/before", whose="mine")

    assert await handle(service, studio) == before
    assert len(await service.run_sql("select from users")) == 1


async def test_joining_keeps_entries_and_payments_and_what_a_search_finds(service: Service) -> None:
    ada = await service.organizer()
    event = await ada.create_event()
    await sign_up(service, event, "ann")
    await service.run_sql(
        """
        insert into check_in_scans (event_id, id, user_id, device, told_at, is_entry)
        select event_id, gen_random_uuid(), user_id, 'door', now(), true from registrations
        """
    )
    await service.run_sql(
        """
        insert into payments (event_id, user_id, arrival, amount, fee, currency, ends_at)
        select event_id, user_id, arrival, 100, 1, 'EUR', now() from registrations
        """
    )
    await service.run_sql("insert into searched_events (event_id) values (%(id)s)", id=event["id"])
    await service.run_sql(
        """
        insert into searched_registrations (event_id, user_id, words, received_at, arrival)
        select event_id, user_id, 'ann@example.com ann', received_at, arrival from registrations
        """
    )
    studio = await service.organizer("Ann Events", email=ANN, is_proved=False)

    ann = Browser(service)
    await ann.sign_in(ANN)
    await ann.send("/console/before", whose="mine")

    for table in ("registrations", "check_in_scans", "payments", "searched_registrations"):
        user_ids: list[Any] = await service.run_sql(f"select user_id from {table}")  # pyright: ignore
        assert user_ids == [(studio.id,)], table


async def test_the_answer_mine_sent_twice_joins_once(service: Service) -> None:
    ada = await service.organizer()
    event = await ada.create_event()
    await sign_up(service, event, "ann")
    await service.organizer("Ann Events", email=ANN, is_proved=False)
    browsers = [Browser(service), Browser(service)]
    for browser in browsers:
        await browser.sign_in(ANN)
    tokens = [token(await browser.get("/console/before")) for browser in browsers]

    answers = await asyncio.gather(
        *(
            browser.http.post("/console/before", data={"token": sent, "whose": "mine"})
            for browser, sent in zip(browsers, tokens, strict=True)
        )
    )

    assert [answer.status_code for answer in answers] == [303, 303]
    assert [registration["email"] for registration in await list_registrations(ada, event)] == [ANN]


async def test_a_person_registered_while_the_organizer_is_joined_is_one_account(service: Service) -> None:
    ada = await service.organizer()
    event = await ada.create_event()
    studio = await service.organizer("Ann Events", email=ANN, is_proved=False)
    ann = Browser(service)
    await ann.sign_in(ANN)

    answers = await asyncio.gather(
        ann.send("/console/before", whose="mine"),
        *(ada.post("/api/registrations", {"registration": {"event_id": event["id"], "email": ANN}}) for _ in range(5)),
    )

    assert {answer.status_code for answer in answers} <= {202, 303, 503}
    await ada.register(event["id"], email=ANN)
    await service.settle()
    [seat] = await list_registrations(ada, event)
    assert seat["user_id"] == await handle(service, studio)


async def test_an_owner_who_says_not_mine_keeps_the_registrations_as_a_person(service: Service) -> None:
    ada = await service.organizer()
    event = await ada.create_event()
    poll = await ada.register(event["id"], email=ANN)
    await service.settle()
    before = await list_registrations(ada, event)
    stranger = await service.organizer("Stranger", email=ANN, slug="stranger", is_proved=False)
    ann = Browser(service)
    await ann.sign_in(ANN)

    await ann.send("/console/before", whose="other")

    assert (await stranger.get("/api/events")).status_code == 401
    assert await list_registrations(ada, event) == before
    assert (await ada.get(poll)).status_code == 200
    assert await service.run_sql(
        "select role, slug, proved_at is not null from users where email = 'ann@example.com'"
    ) == [("user", None, True)]
    done = await ann.send("/console/start", name="Ann Events", slug="stranger")
    assert done.status_code == 303
    [organizer] = await service.run_sql("select slug, name from users where email = 'ann@example.com'")
    assert organizer == ("stranger", "Ann Events")
