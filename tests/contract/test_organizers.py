"""Organizers register themselves, and are listed."""

from typing import Any

import httpx2
import pytest

from holdfast.events.settings import Settings
from tests.contract.requirements import requirement
from tests.contract.shapes import RegisteredOrganizer, User, failing_fields, objects_on_page, one, refusal
from tests.helpers.cases import in_turn
from tests.helpers.events_service import Client, Service, running_events

REGISTER = "/api/organizers/register"


@pytest.fixture
def service(new_service: Service) -> Service:
    """Names and addresses that tests register stay taken."""
    return new_service


def organizer_fields(**changes: Any) -> dict[str, Any]:
    return {"name": "Ada Events", "email": "ada@example.com", "slug": "ada-events", **changes}


async def register(service: Service, **changes: Any) -> httpx2.Response:
    return await service.anonymous.post(REGISTER, {"organizer": organizer_fields(**changes)})


async def register_from(service: Service, address: str, name: str) -> httpx2.Response:
    """Register from another client address."""
    async with service.client_at(address) as http:
        return await http.post(REGISTER, json={"organizer": organizer_fields(email=f"{name}@example.com", slug=name)})


@requirement("organizer.register.public", "organizer.register.organizer")
async def test_an_organizer_registers_without_a_key(service: Service) -> None:
    registered = one(await register(service), RegisteredOrganizer, status=201)

    organizer = registered.organizer
    assert (organizer.name, organizer.email, organizer.slug) == ("Ada Events", "ada@example.com", "ada-events")
    assert organizer.role == "organizer"
    assert registered.authentication.header == "X-API-Key"
    assert registered.api_key.user_id == organizer.id
    assert registered.api_key.active is True


@requirement("organizer.register.organizer")
async def test_a_new_organizer_has_a_public_page_under_its_slug(service: Service) -> None:
    organizer = one(await register(service, slug="life-drawing"), RegisteredOrganizer, status=201).organizer

    assert organizer.public_path == "/organizers/life-drawing"
    assert organizer.public_url == "http://events.test/organizers/life-drawing"


@requirement("organizer.register.key-once")
async def test_the_first_key_works_at_once(service: Service) -> None:
    key = one(await register(service), RegisteredOrganizer, status=201).api_key.key

    assert (
        objects_on_page(await service.http.get("/api/organizers", headers={"X-API-Key": key}), User)[0].slug
        == "ada-events"
    )


@requirement("organizer.register.key-once")
@pytest.mark.parametrize("path", ["/api/keys", "/api/organizers", "/api/users", "/api/events", "/api"])
async def test_the_full_key_is_in_no_later_answer(service: Service, path: str) -> None:
    ada = await service.organizer()
    admin = await service.admin()

    assert str(ada.key) not in (await ada.get(path)).text
    assert str(ada.key) not in (await admin.get(path)).text


@requirement("organizer.register.public")
async def test_a_second_registration_of_an_organizer_does_not_show_the_key(service: Service) -> None:
    first = one(await register(service), RegisteredOrganizer, status=201)

    again = await register(service)

    assert failing_fields(again) == {"email", "slug"}
    assert first.api_key.key not in again.text


@requirement("organizer.register.name", "organizer.register.email", "organizer.register.slug", "errors.validation")
@pytest.mark.parametrize("name", ["name", "email", "slug"])
async def test_an_organizer_without_a_required_field_is_refused(service: Service, name: str) -> None:
    fields = organizer_fields()
    del fields[name]

    assert failing_fields(await service.anonymous.post(REGISTER, {"organizer": fields})) == {name}


@requirement("organizer.register.name", "organizer.register.email", "organizer.register.slug")
@pytest.mark.parametrize("value", [None, 4711, ["Ada Events"], {}, True])
async def test_fields_that_are_no_strings_are_all_named(service: Service, value: Any) -> None:
    answer = await register(service, name=value, email=value, slug=value)

    assert failing_fields(answer) == {"name", "email", "slug"}


@requirement("organizer.register.name")
@pytest.mark.parametrize("name", ["Anna", "a" * 100, "Ännä", "字" * 100])
async def test_a_name_of_4_to_100_characters_is_taken(service: Service, name: str) -> None:
    assert one(await register(service, name=name), RegisteredOrganizer, status=201).organizer.name == name


@requirement("organizer.register.name")
@pytest.mark.parametrize("name", ["", "Ann", "a" * 101, "字" * 101])
async def test_a_name_of_any_other_length_is_refused(service: Service, name: str) -> None:
    assert failing_fields(await register(service, name=name)) == {"name"}


@requirement("organizer.register.email")
@in_turn("email", ["", "ada", "ada@", "@example.com", "ada@example", "ada ada@example.com", "a@b@c.de"])
async def test_an_organizer_with_an_invalid_email_address_is_refused(service: Service, email: str) -> None:
    assert failing_fields(await register(service, email=email)) == {"email"}


@requirement("organizer.register.email")
@pytest.mark.parametrize("email", ["ada@example.com", "ADA@Example.COM"])
async def test_an_email_address_registers_once(service: Service, email: str) -> None:
    await register(service)

    assert failing_fields(await register(service, email=email, slug="another")) == {"email"}


@requirement("organizer.register.slug")
@pytest.mark.parametrize("slug", ["abc", "a" * 100, "2026", "life-drawing-2"])
async def test_a_slug_of_3_to_100_plain_characters_is_taken(service: Service, slug: str) -> None:
    assert one(await register(service, slug=slug), RegisteredOrganizer, status=201).organizer.slug == slug


@requirement("organizer.register.slug")
@pytest.mark.parametrize("slug", ["", "ab", "a" * 101])
async def test_a_slug_of_any_other_length_is_refused(service: Service, slug: str) -> None:
    assert failing_fields(await register(service, slug=slug)) == {"slug"}


@requirement("organizer.register.slug")
@in_turn("slug", ["Ada", "a_b", "a b", "a.b", "a/b", "ädä", "ada\n", " ada", "٣٣٣"])
async def test_a_slug_with_another_character_is_refused(service: Service, slug: str) -> None:
    assert failing_fields(await register(service, slug=slug)) == {"slug"}


@requirement("organizer.register.slug")
@in_turn(
    "slug",
    [
        "admin",
        "api",
        "console",
        "events",
        "log",
        "mails",
        "mcp",
        "oauth",
        "organizers",
        "queues",
        "verify",
        "www",
    ],
)
async def test_a_reserved_slug_is_refused(service: Service, slug: str) -> None:
    assert failing_fields(await register(service, slug=slug)) == {"slug"}


@requirement("organizer.register.slug")
async def test_a_slug_registers_once(service: Service) -> None:
    await register(service)

    assert failing_fields(await register(service, email="another@example.com")) == {"slug"}


@requirement("organizer.register.slug")
async def test_a_refused_organizer_leaves_its_address_free(service: Service) -> None:
    await register(service, slug="admin")

    assert (
        one(await register(service, slug="free"), RegisteredOrganizer, status=201).organizer.email == "ada@example.com"
    )


@requirement("organizer.register.password")
@pytest.mark.parametrize("length", [12, 72])
async def test_a_password_of_12_to_72_characters_is_taken_and_never_shown(service: Service, length: int) -> None:
    password = "pässwörd" * 9

    response = await register(service, password=password[:length])

    one(response, RegisteredOrganizer, status=201)
    assert password[:length] not in response.text


@requirement("organizer.register.password")
@pytest.mark.parametrize("length", [0, 11, 73])
async def test_a_password_of_any_other_length_is_refused(service: Service, length: int) -> None:
    assert failing_fields(await register(service, password="p" * length)) == {"password"}


@requirement("organizer.register.throttle", "errors.rate-limit")
async def test_an_address_over_the_limit_of_new_organizers_is_answered_with_retry_after(settings: Settings) -> None:
    async with running_events(settings.model_copy(update={"organizers_per_hour": 2})) as service:
        await register_from(service, "10.0.0.7", "first")
        await register_from(service, "10.0.0.7", "second")

        third = await register_from(service, "10.0.0.7", "third")

        assert refusal(third) == (429, "rate_limited")
        assert third.headers["Retry-After"] == str(third.json()["retry_after"])
        assert 1 <= third.json()["retry_after"] <= 3600


@requirement("organizer.register.throttle")
async def test_the_limit_of_new_organizers_counts_for_one_address(settings: Settings) -> None:
    async with running_events(settings.model_copy(update={"organizers_per_hour": 1})) as service:
        one(await register_from(service, "10.0.0.7", "first"), RegisteredOrganizer, status=201)
        assert refusal(await register_from(service, "10.0.0.7", "second")) == (429, "rate_limited")

        one(await register_from(service, "10.0.0.8", "third"), RegisteredOrganizer, status=201)


@requirement("organizer.register.throttle")
async def test_a_client_cannot_claim_another_address_to_escape_the_throttle(settings: Settings) -> None:
    async with running_events(settings.model_copy(update={"organizers_per_hour": 1})) as service:
        await register(service)

        body = {"organizer": organizer_fields(email="b@example.com", slug="another")}
        again = await service.anonymous.post(REGISTER, body, headers={"X-Forwarded-For": "10.9.9.9"})

        assert refusal(again) == (429, "rate_limited")


@requirement("organizer.register.throttle")
async def test_an_organizer_refused_by_the_limit_is_not_stored(settings: Settings) -> None:
    async with running_events(settings.model_copy(update={"organizers_per_hour": 1})) as service:
        await register(service)
        await register(service, email="late@example.com", slug="late")

        everyone = objects_on_page(await (await service.admin()).get("/api/organizers"), User)

        assert [organizer.slug for organizer in everyone] == ["ada-events"]


async def two_organizers_and_a_student(service: Service) -> tuple[Client, Client]:
    ada, ben = await service.organizer("Ada Events"), await service.organizer("Ben Events")
    event = await ada.create_event()
    await ada.register(event["id"], email="student@example.com")
    await service.settle()
    return ada, ben


@requirement("organizers.list")
async def test_only_an_admin_lists_all_organizers(service: Service) -> None:
    ada, ben = await two_organizers_and_a_student(service)

    everyone = objects_on_page(await (await service.admin()).get("/api/organizers"), User)

    assert [(organizer.id, organizer.name, organizer.slug) for organizer in everyone] == [
        (ada.id, "Ada Events", ada.slug),
        (ben.id, "Ben Events", ben.slug),
    ]
    assert {organizer.role for organizer in everyone} == {"organizer"}


@requirement("organizers.list", "auth.organizer-scope")
async def test_an_organizer_lists_itself(service: Service) -> None:
    ada, _ = await two_organizers_and_a_student(service)

    assert [organizer.id for organizer in objects_on_page(await ada.get("/api/organizers"), User)] == [ada.id]
