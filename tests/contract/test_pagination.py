"""Lists come in pages."""

import pytest

from tests.contract.requirements import requirement
from tests.contract.shapes import Event, Pagination, Registration, User, failing_fields, objects_on_page, page
from tests.helpers.cases import in_turn
from tests.helpers.events_service import Client, Service

LISTS = {"/api/events": Event, "/api/registrations": Registration, "/api/users": User, "/api/organizers": User}

each_list = pytest.mark.parametrize("path", LISTS)


@pytest.fixture
def service(new_service: Service) -> Service:
    """Administrators see everything there is."""
    return new_service


@pytest.fixture
async def admin(service: Service) -> Client:
    """Someone who sees three of everything: organizers, and events with a registration each."""
    for name in ("ann", "bob", "cal"):
        organizer = await service.organizer()
        event = await organizer.create_event()
        await organizer.register(event["id"], email=f"{name}@example.com")
    await service.settle()
    return await service.admin()


@requirement("pagination.fields", "format.data")
@each_list
async def test_a_page_has_its_items_and_count_offset_limit_and_has_more(admin: Client, path: str) -> None:
    items, pagination = page(await admin.get(path, params={"offset": 1, "limit": 1}), LISTS[path])

    assert len(items) == 1
    assert pagination == Pagination(count=1, offset=1, limit=1, has_more=True)


@requirement("pagination.fields", "pagination.has-more")
@each_list
async def test_a_list_of_nothing_has_a_page_without_items(admin: Client, path: str) -> None:
    items, pagination = page(await admin.get(path, params={"offset": 1000}), LISTS[path])

    assert items == []
    assert pagination == Pagination(count=0, offset=1000, limit=100, has_more=False)


@requirement("pagination.defaults")
@each_list
async def test_a_list_begins_at_its_start_with_pages_of_100(admin: Client, path: str) -> None:
    items, pagination = page(await admin.get(path), LISTS[path])

    assert (pagination.offset, pagination.limit) == (0, 100)
    assert items == objects_on_page(await admin.get(path, params={"offset": 0, "limit": 100}), LISTS[path])


@requirement("pagination.defaults", "pagination.has-more")
async def test_a_page_holds_100_of_101_items_by_default(service: Service) -> None:
    ada = await service.organizer()
    ids = [(await ada.create_event())["id"] for _ in range(101)]

    first, pagination = page(await ada.get("/api/events"), Event)

    assert [event.id for event in first] == ids[:100]
    assert pagination == Pagination(count=100, offset=0, limit=100, has_more=True)
    rest, pagination = page(await ada.get("/api/events", params={"offset": 100}), Event)
    assert [event.id for event in rest] == ids[100:]
    assert pagination == Pagination(count=1, offset=100, limit=100, has_more=False)


@requirement("pagination.bounds")
@in_turn(("name", "value"), [("limit", 1), ("limit", 500), ("offset", 0), ("offset", 100_000)])
async def test_limit_and_offset_within_bounds_are_applied(admin: Client, name: str, value: int) -> None:
    answers = {path: await admin.get(path, params={name: value}) for path in LISTS}

    applied = {path: answer.json()["pagination"][name] for path, answer in answers.items()}
    assert applied == dict.fromkeys(LISTS, value)


@requirement("pagination.bounds", "errors.validation")
@in_turn(
    ("name", "value"),
    [
        *[("limit", value) for value in ("501", "0", "-1", "ten", "1.5", "1.0", "1e1", "", "99999999999999999999")],
        *[("offset", value) for value in ("100001", "-1", "ten", "0.5", "1.0", "1e1", "", "99999999999999999999")],
    ],
)
async def test_a_page_out_of_bounds_is_refused(admin: Client, name: str, value: str) -> None:
    refusals = {path: failing_fields(await admin.get(path, params={name: value})) for path in LISTS}

    assert refusals == {path: {name} for path in LISTS}


@requirement("pagination.bounds")
async def test_every_bound_that_is_broken_is_named(admin: Client) -> None:
    response = await admin.get("/api/events", params={"offset": 100_001, "limit": 501})

    assert failing_fields(response) == {"offset", "limit"}


@requirement("pagination.bounds")
async def test_a_bound_given_twice_is_refused(admin: Client) -> None:
    assert failing_fields(await admin.get("/api/events?limit=1&limit=2")) == {"limit"}


@requirement("pagination.has-more")
@pytest.mark.parametrize("path", ["/api/events", "/api/registrations", "/api/organizers"])
@in_turn(
    ("offset", "limit", "count", "has_more"),
    [(0, 2, 2, True), (0, 3, 3, False), (0, 4, 3, False), (1, 1, 1, True), (1, 2, 2, False), (3, 1, 0, False)],
)
async def test_has_more_is_true_exactly_when_items_follow(
    admin: Client, path: str, offset: int, limit: int, count: int, has_more: bool
) -> None:
    _, pagination = page(await admin.get(path, params={"offset": offset, "limit": limit}), LISTS[path])

    assert pagination == Pagination(count, offset, limit, has_more)


@requirement("pagination.has-more")
@each_list
async def test_turning_the_pages_shows_every_item_once(admin: Client, path: str) -> None:
    all_items = objects_on_page(await admin.get(path), LISTS[path])

    pages = [
        objects_on_page(await admin.get(path, params={"offset": offset, "limit": 1}), LISTS[path])
        for offset in range(len(all_items))
    ]

    assert [item for items in pages for item in items] == all_items


@requirement("pagination.has-more", "auth.organizer-scope")
async def test_has_more_does_not_count_items_of_others(service: Service) -> None:
    ada, ben = await service.organizer(), await service.organizer()
    await ada.create_event()
    await ben.create_event()

    _, pagination = page(await ada.get("/api/events", params={"limit": 1}), Event)

    assert pagination == Pagination(count=1, offset=0, limit=1, has_more=False)
