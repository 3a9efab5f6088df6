"""GET /api/users: an admin lists all users, an organizer the people registered with it."""

import pytest

from tests.contract.requirements import requirement
from tests.contract.shapes import User, objects_on_page
from tests.helpers.events_service import Service


@pytest.fixture
def service(new_service: Service) -> Service:
    """Administrators see everyone there is, and addresses that tests register stay taken."""
    return new_service


@requirement("users.list", "auth.admin")
async def test_an_admin_lists_organizers_and_people(service: Service) -> None:
    ada = await service.organizer("Ada Events", email="ada@example.com", slug="ada")
    event = await ada.create_event()
    await ada.register(event["id"], email="ann@example.com")

    organizer, student = objects_on_page(await (await service.admin()).get("/api/users"), User)

    assert organizer == User(ada.id, organizer.public_id, "Ada Events", "ada@example.com", "organizer", "ada")
    assert student == User(student.id, student.public_id, None, "ann@example.com", "user", None)


@requirement("users.list", "auth.organizer-scope")
async def test_an_organizer_lists_itself_and_the_people_registered_for_its_events(service: Service) -> None:
    ada = await service.organizer(email="ada@example.com")
    ben = await service.organizer(email="ben@example.com")
    await ada.register((await ada.create_event())["id"], email="ann@example.com")
    await ben.register((await ben.create_event())["id"], email="bob@example.com")
    await service.settle()

    assert [user.email for user in objects_on_page(await ada.get("/api/users"), User)] == [
        "ada@example.com",
        "ann@example.com",
    ]
    assert [user.email for user in objects_on_page(await ben.get("/api/users"), User)] == [
        "ben@example.com",
        "bob@example.com",
    ]


@requirement("users.list")
async def test_a_person_registered_twice_is_listed_once(service: Service) -> None:
    ada = await service.organizer(email="ada@example.com")
    await ada.register((await ada.create_event())["id"], email="ann@example.com")
    await ada.register((await ada.create_event())["id"], email="ann@example.com")
    await service.settle()

    assert [user.email for user in objects_on_page(await ada.get("/api/users"), User)] == [
        "ada@example.com",
        "ann@example.com",
    ]
