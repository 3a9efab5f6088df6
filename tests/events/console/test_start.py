"""The way into the console: sign in, say whose the keys are that were made before, become an organizer."""

import re

import pytest

from tests.helpers.events_service import Client, Service
from tests.helpers.form_browser import Browser, token

ANN = "ann@example.com"


async def test_a_person_with_registrations_becomes_an_organizer(service: Service) -> None:
    ada = await service.organizer()
    event = await ada.create_event()
    await ada.register(event["id"], email=ANN)
    ann = Browser(service)
    await ann.sign_in(ANN)

    led = await ann.get("/console")
    done = await ann.send(led.headers["location"], "/console/start", name="Ann Events", slug="ann-events")

    assert led.headers["location"] == "/console/start?return_to=%2Fconsole"
    assert (done.status_code, done.headers["location"]) == (303, "/console")
    assert "You have no events yet." in (await ann.get("/console")).text
    assert (await service.http.get("/organizers/ann-events")).status_code == 200
    assert await service.run_sql("select role::text, slug from users where email = %(email)s", email=ANN) == [
        ("organizer", "ann-events")
    ]


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"name": "Ann Events", "slug": "taken"}, "is already taken"),
        ({"name": "Ann Events", "slug": "admin"}, "is reserved"),
        (
            {"name": "Ann Events", "slug": "Ann Events"},
            "Enter 3 to 100 lowercase letters, digits and dashes",
        ),
        ({"name": "Ann", "slug": "ann-events"}, "4"),
        ({}, "Enter the name that people see, such as"),
    ],
)
async def test_an_invalid_field_of_a_new_organizer_has_its_message_and_keeps_the_typed_text(
    service: Service, fields: dict[str, str], message: str
) -> None:
    await service.organizer(slug="taken")
    ann = Browser(service)
    await ann.sign_in(ANN)

    answer = await ann.send("/console/start", **fields)

    assert (answer.status_code, message in answer.text) == (422, True)
    for value in fields.values():
        assert f'value="{value}"' in answer.text


@pytest.mark.parametrize(
    ("name", "slug"),
    [
        ("Käthe's Töpfer-Club!", "kaethes-toepfer-club"),
        ("Taken Events", "taken-events-2"),
        ("Été à Paris", "ete-a-paris"),
    ],
)
async def test_the_address_of_a_page_is_made_from_the_name_if_none_is_typed(
    service: Service, name: str, slug: str
) -> None:
    await service.organizer(slug="taken-events")
    ann = Browser(service)
    await ann.sign_in(ANN)

    done = await ann.send("/console/start", name=name, slug="")

    assert (done.status_code, done.headers.get("location")) == (303, "/console")
    assert await service.run_sql("select slug from users where email = %(email)s", email=ANN) == [(slug,)]


@pytest.mark.parametrize("name", ["日本の会社", "A !!"])
async def test_a_name_without_letters_for_an_address_needs_a_typed_one(service: Service, name: str) -> None:
    ann = Browser(service)
    await ann.sign_in(ANN)

    answer = await ann.send("/console/start", name=name, slug="")

    assert answer.status_code == 422
    assert re.findall('<input id="([a-z]+)"[^>]* aria-invalid="true"', answer.text) == ["slug"]


async def test_only_the_name_is_missed_if_nothing_is_typed(service: Service) -> None:
    ann = Browser(service)
    await ann.sign_in(ANN)

    answer = await ann.send("/console/start", name="", slug="")

    assert answer.status_code == 422
    assert re.findall('<input id="([a-z]+)"[^>]* aria-invalid="true"', answer.text) == ["name"]


async def test_an_organizer_sees_its_own_events_only(service: Service) -> None:
    ada = await service.organizer(email="ada@example.com", password="correct horse battery")
    other = await service.organizer()
    await ada.create_event(title="Life drawing")
    await other.create_event(title="Secret meeting")
    browser = Browser(service)
    await browser.send("/sign-in", email="ada@example.com", password="correct horse battery")

    page = await browser.get("/console")

    assert "Life drawing" in page.text
    assert "Secret meeting" not in page.text


async def test_an_owner_who_signs_in_for_the_first_time_says_that_the_earlier_keys_are_theirs(service: Service) -> None:
    ada = await service.organizer(is_proved=False, email=ANN)
    ann = Browser(service)
    await ann.sign_in(ANN)

    led = await ann.get("/console")
    page = await ann.get("/console/before")
    await ann.send("/console/before", whose="mine")

    assert led.headers["location"].startswith("/console/before?")
    assert f"{str(ada.key)[:8]}…" in page.text
    assert (await ann.get("/console")).status_code == 200
    assert (await ada.get("/api/events")).status_code == 200


async def test_keys_a_password_and_sessions_of_a_stranger_can_be_ended(service: Service) -> None:
    thief_key = await service.organizer(is_proved=False, email=ANN, password="correct horse battery")
    thief, ann = Browser(service), Browser(service)
    await thief.send("/sign-in", email=ANN, password="correct horse battery")
    assert (await thief.get("/console")).status_code == 200
    await ann.sign_in(ANN)

    await ann.send("/console/before", whose="other")

    assert (await thief_key.get("/api/events")).status_code == 401
    assert not await thief.is_signed_in()
    assert (await thief.send("/sign-in", email=ANN, password="correct horse battery")).status_code == 422
    assert (await ann.get("/console")).headers["location"].startswith("/console/start")


async def test_the_question_whose_the_earlier_keys_are_is_answered_once(service: Service) -> None:
    ada: Client = await service.organizer(is_proved=False, email=ANN)
    ann = Browser(service)
    await ann.sign_in(ANN)
    form = await ann.get("/console/before")
    await ann.send("/console/before", whose="mine")

    again = await ann.http.post("/console/before", data={"token": token(form), "whose": "other"})

    assert again.headers["location"] == "/console"
    assert (await ada.get("/api/events")).status_code == 200


async def test_the_page_to_become_an_organizer_keeps_the_page_to_return_to_in_another_language(
    service: Service,
) -> None:
    ann = Browser(service)
    await ann.sign_in(ANN)
    led = (await ann.get("/console/agents?q=%22%3E")).headers["location"]
    link = 'href="?return_to=%2Fconsole%2Fagents%3Fq%3D%2522%253E&amp;lang=de"'

    response = await ann.get(led)
    refusal = await ann.send(led, "/console/start", name="Ann", return_to="/console/agents?q=%22%3E")

    assert link in response.text
    assert (refusal.status_code, link in refusal.text) == (422, True)
