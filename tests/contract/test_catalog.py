"""GET /api lists every operation, for anyone."""

import pytest

from tests.contract.requirements import requirement
from tests.helpers.events_service import Service

PROMISED = [
    ("POST", "/api/organizers/register"),
    ("GET", "/api/organizers"),
    ("GET", "/api/users"),
    ("GET", "/api/keys"),
    ("POST", "/api/keys"),
    ("DELETE", "/api/keys/{id}"),
    ("GET", "/api/events"),
    ("POST", "/api/events"),
    ("GET", "/api/events/{event_id}"),
    ("PATCH", "/api/events/{event_id}"),
    ("DELETE", "/api/events/{event_id}"),
    ("GET", "/api/events/{event_id}/price_history"),
    ("GET", "/api/registrations"),
    ("POST", "/api/registrations"),
    ("GET", "/api/registrations/{event_id}/{user_id}"),
    ("PATCH", "/api/registrations/{event_id}/{user_id}"),
    ("DELETE", "/api/registrations/{event_id}/{user_id}"),
]


@requirement("catalog")
async def test_the_catalog_needs_no_key_and_names_its_version(service: Service) -> None:
    response = await service.anonymous.get("/api")

    assert response.status_code == 200
    assert response.headers["content-type"] == "application/json"
    assert response.json()["version"] == "1.6.0"


@requirement("catalog")
async def test_the_catalog_names_every_operation(service: Service) -> None:
    endpoints = (await service.anonymous.get("/api")).json()["endpoints"]

    listed = {(endpoint["method"], endpoint["path"]) for endpoint in endpoints}

    assert set(PROMISED) <= listed


@requirement("catalog", "organizer.register.public")
async def test_registering_an_organizer_is_the_only_write_without_a_key(
    service: Service,
) -> None:
    endpoints = (await service.anonymous.get("/api")).json()["endpoints"]

    public = [
        endpoint["path"]
        for endpoint in endpoints
        if endpoint["authentication"] == "none" and endpoint["method"] != "GET"
    ]

    assert public == ["/api/organizers/register"]


@requirement("catalog")
@pytest.mark.parametrize("key", ["nonsense", ""])
async def test_the_catalog_is_shown_even_with_a_wrong_key(service: Service, key: str) -> None:
    assert (await service.http.get("/api", headers={"X-API-Key": key})).status_code == 200


@requirement("catalog")
async def test_the_catalog_needs_no_database(new_service: Service) -> None:
    await new_service.database.pool.close()

    assert (await new_service.anonymous.get("/api")).status_code == 200
