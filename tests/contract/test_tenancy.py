"""An organizer reaches its own and nothing else; an admin reaches everything."""

from typing import Any

import pytest

from tests.contract.requirements import requirement
from tests.contract.shapes import (
    ApiKey,
    Event,
    PriceChange,
    Registration,
    User,
    failing_fields,
    objects_on_page,
    one,
    refusal,
    unpaged_objects,
)
from tests.helpers.cases import in_turn
from tests.helpers.events_service import Client, Service, event_fields


class TenancyScene:
    """An event of Ada's with one registration, and Eve, another organizer."""

    def __init__(self, ada: Client, eve: Client, event: dict[str, Any], poll: str, key_id: int) -> None:
        self.ada = ada
        self.eve = eve
        self.event = f"/api/events/{event['id']}"
        self.event_id: int = event["id"]
        self.registration = poll
        self.key = f"/api/keys/{key_id}"

    async def own_answers(self) -> list[Any]:
        """All that Ada can see of her own."""
        paths = (self.event, f"{self.event}/price_history", self.registration, "/api/registrations", "/api/keys")
        return [(await self.ada.get(path)).json() for path in paths]


@pytest.fixture
def service(new_service: Service) -> Service:
    """Administrators see everything there is."""
    return new_service


@pytest.fixture
async def scene(service: Service) -> TenancyScene:
    ada, eve = await service.organizer("Ada Events"), await service.organizer("Eve Events")
    event = await ada.create_event(pricing_mode="fixed", price=2500)
    poll = await ada.register(event["id"], email="ann@example.com")
    await service.settle()
    [key] = unpaged_objects(await ada.get("/api/keys"), ApiKey)
    return TenancyScene(ada, eve, event, poll, key.id)


@requirement("auth.organizer-scope")
@in_turn(
    ("method", "path", "body"),
    [
        ("GET", "{0.event}", None),
        ("PATCH", "{0.event}", {"event": {"title": "Mine now"}}),
        ("PATCH", "{0.event}", {"event": {"price": 1}}),
        ("PATCH", "{0.event}", {"event": {}}),
        ("DELETE", "{0.event}", None),
        ("GET", "{0.event}/price_history", None),
        ("GET", "{0.registration}", None),
        ("PATCH", "{0.registration}", {"registration": {"status": "waitlisted"}}),
        ("PATCH", "{0.registration}", {"registration": {"amount_paid": 0}}),
        ("DELETE", "{0.registration}", None),
        ("DELETE", "{0.key}", None),
    ],
)
async def test_data_of_another_organizer_cannot_be_read_or_changed(
    scene: TenancyScene, method: str, path: str, body: Any
) -> None:
    before = await scene.own_answers()

    response = await scene.eve.request(method, path.format(scene), body)

    assert refusal(response) == (403, "forbidden")
    assert await scene.own_answers() == before


@requirement("auth.organizer-scope")
@pytest.mark.parametrize("person", [{"email": "bob@example.com"}, {"user_id": "abcdefgh"}])
async def test_an_event_of_another_organizer_takes_no_registrations_from_this_one(
    scene: TenancyScene, person: dict[str, str]
) -> None:
    before = await scene.own_answers()

    response = await scene.eve.post("/api/registrations", {"registration": {"event_id": scene.event_id, **person}})

    assert refusal(response) == (403, "forbidden")
    assert await scene.own_answers() == before


@requirement("auth.organizer-scope")
async def test_a_registration_for_another_organizer_creates_no_account(service: Service, scene: TenancyScene) -> None:
    body = {"registration": {"event_id": scene.event_id, "email": "bob@example.com"}}

    assert refusal(await scene.eve.post("/api/registrations", body)) == (403, "forbidden")

    everyone = objects_on_page(await (await service.admin()).get("/api/users"), User)
    assert "bob@example.com" not in [user.email for user in everyone]


@requirement("auth.organizer-scope")
@pytest.mark.parametrize("method", ["GET", "DELETE"])
async def test_registrations_with_another_organizer_cannot_be_probed(scene: TenancyScene, method: str) -> None:
    response = await scene.eve.request(method, f"/api/registrations/{scene.event_id}/abcdefgh")

    assert refusal(response) == (403, "forbidden")


@requirement("auth.organizer-scope")
async def test_an_event_cannot_be_created_for_another_organizer(scene: TenancyScene) -> None:
    response = await scene.eve.post("/api/events", {"event": event_fields(organizer_id=scene.ada.id)})

    assert refusal(response) == (403, "forbidden")
    assert [event.id for event in objects_on_page(await scene.ada.get("/api/events"), Event)] == [scene.event_id]


@requirement("auth.organizer-scope", "keys.create.self")
async def test_a_key_cannot_be_created_for_another_organizer(scene: TenancyScene) -> None:
    response = await scene.eve.post("/api/keys", {"api_key": {"name": "Mine now", "user_id": scene.ada.id}})

    assert refusal(response) == (403, "forbidden")
    assert len(unpaged_objects(await scene.ada.get("/api/keys"), ApiKey)) == 1


@requirement("auth.organizer-scope")
@pytest.mark.parametrize("path", ["/api/events", "/api/registrations"])
async def test_lists_hold_nothing_of_another_organizer(scene: TenancyScene, path: str) -> None:
    assert len((await scene.ada.get(path)).json()["data"]) == 1
    assert (await scene.eve.get(path)).json()["data"] == []


@requirement("auth.organizer-scope")
async def test_a_key_made_for_an_organizer_is_bound_to_it(service: Service, scene: TenancyScene) -> None:
    made = await (await service.admin()).post("/api/keys", {"api_key": {"name": "Eve", "user_id": scene.eve.id}})
    spare = Client(service.http, one(made, ApiKey, status=201).key)

    assert refusal(await spare.get(scene.event)) == (403, "forbidden")
    assert objects_on_page(await spare.get("/api/events"), Event) == []


@requirement("auth.admin")
async def test_an_admin_reads_data_of_any_organizer(service: Service, scene: TenancyScene) -> None:
    admin = await service.admin()

    assert one(await admin.get(scene.event), Event).organizer_id == scene.ada.id
    assert [
        change.new_price for change in unpaged_objects(await admin.get(f"{scene.event}/price_history"), PriceChange)
    ] == [2500]
    assert one(await admin.get(scene.registration), Registration).status == "registered"


@requirement("auth.admin")
async def test_an_admin_changes_data_of_any_organizer(service: Service, scene: TenancyScene) -> None:
    admin = await service.admin()

    await admin.patch(scene.event, {"event": {"title": "Portraits"}})
    await admin.patch(scene.registration, {"registration": {"amount_paid": 7}})

    assert one(await scene.ada.get(scene.event), Event).title == "Portraits"
    assert one(await scene.ada.get(scene.registration), Registration).amount_paid == 7


@requirement("auth.admin")
async def test_an_admin_registers_people_for_the_event_of_any_organizer(service: Service, scene: TenancyScene) -> None:
    poll = await (await service.admin()).register(scene.event_id, email="bob@example.com")
    await service.settle()

    assert one(await scene.ada.get(poll), Registration).status == "registered"


@requirement("auth.admin")
async def test_an_admin_removes_data_of_any_organizer(service: Service, scene: TenancyScene) -> None:
    admin = await service.admin()

    assert (await admin.delete(scene.registration)).status_code == 204
    assert one(await admin.delete(scene.event), Event).status == "cancelled"

    assert refusal(await scene.ada.get(scene.registration)) == (404, "not_found")
    assert one(await scene.ada.get(scene.event), Event).status == "cancelled"


@requirement("auth.admin-organizer-id")
async def test_an_admin_names_the_organizer_of_a_new_event(service: Service) -> None:
    ada = await service.organizer()

    event = await (await service.admin()).create_event(organizer_id=ada.id)

    assert event["organizer_id"] == ada.id
    assert [event.id for event in objects_on_page(await ada.get("/api/events"), Event)] == [event["id"]]


@requirement("auth.admin-organizer-id")
@pytest.mark.parametrize("organizer", [{}, {"organizer_id": None}, {"organizer_id": 4711}])
async def test_an_event_created_by_an_admin_without_an_organizer_is_refused(
    service: Service, organizer: dict[str, Any]
) -> None:
    admin = await service.admin()

    response = await admin.post("/api/events", {"event": event_fields(**organizer)})

    assert failing_fields(response) == {"organizer_id"}
    assert objects_on_page(await admin.get("/api/events"), Event) == []


@requirement("auth.admin-organizer-id")
async def test_a_student_cannot_be_named_as_organizer(service: Service, scene: TenancyScene) -> None:
    admin = await service.admin()
    [student] = [user for user in objects_on_page(await admin.get("/api/users"), User) if user.role == "user"]

    response = await admin.post("/api/events", {"event": event_fields(organizer_id=student.id)})

    assert failing_fields(response) == {"organizer_id"}


@requirement("auth.admin-user-id")
async def test_an_admin_names_the_organizer_of_a_new_key(service: Service) -> None:
    ada = await service.organizer()

    made = await (await service.admin()).post("/api/keys", {"api_key": {"name": "Box office", "user_id": ada.id}})

    key = one(made, ApiKey, status=201)
    assert key.user_id == ada.id
    assert [
        organizer.id for organizer in objects_on_page(await Client(service.http, key.key).get("/api/organizers"), User)
    ] == [ada.id]


@requirement("auth.admin-user-id")
@pytest.mark.parametrize("user", [{}, {"user_id": None}, {"user_id": 4711}])
async def test_a_key_created_by_an_admin_without_an_organizer_is_refused(
    service: Service, user: dict[str, Any]
) -> None:
    response = await (await service.admin()).post("/api/keys", {"api_key": {"name": "Box office", **user}})

    assert failing_fields(response) == {"user_id"}
