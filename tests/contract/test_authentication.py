"""A key authenticates, in a header or as a bearer token, until it is revoked."""

import pytest

from tests.contract.requirements import requirement
from tests.contract.shapes import ApiKey, User, objects_on_page, one, refusal, unpaged_objects
from tests.helpers.events_service import Client, Service

PROTECTED = [
    ("GET", "/api/organizers"),
    ("GET", "/api/users"),
    ("GET", "/api/keys"),
    ("POST", "/api/keys"),
    ("DELETE", "/api/keys/1"),
    ("GET", "/api/events"),
    ("POST", "/api/events"),
    ("GET", "/api/events/1"),
    ("PATCH", "/api/events/1"),
    ("DELETE", "/api/events/1"),
    ("GET", "/api/events/1/price_history"),
    ("GET", "/api/registrations"),
    ("POST", "/api/registrations"),
    ("GET", "/api/registrations/1/abcdefgh"),
    ("PATCH", "/api/registrations/1/abcdefgh"),
    ("DELETE", "/api/registrations/1/abcdefgh"),
]


@requirement("auth.header")
async def test_the_x_api_key_header_authenticates(service: Service) -> None:
    ada = await service.organizer()

    response = await service.http.get("/api/organizers", headers={"X-API-Key": str(ada.key)})

    assert [user.id for user in objects_on_page(response, User)] == [ada.id]


@requirement("auth.bearer")
@pytest.mark.parametrize("scheme", ["Bearer", "bearer"])
async def test_a_bearer_token_authenticates_as_the_header_does(service: Service, scheme: str) -> None:
    ada = await service.organizer()

    response = await service.http.get("/api/organizers", headers={"Authorization": f"{scheme} {ada.key}"})

    assert [user.id for user in objects_on_page(response, User)] == [ada.id]


@requirement("auth.missing")
async def test_every_operation_but_registering_an_organizer_needs_a_key(service: Service) -> None:
    refusals = {(method, path): refusal(await service.anonymous.request(method, path)) for method, path in PROTECTED}

    assert refusals == dict.fromkeys(PROTECTED, (401, "missing_api_key"))


@requirement("auth.invalid")
async def test_no_operation_takes_an_unknown_key(service: Service) -> None:
    stranger = Client(service.http, f"hf_{'x' * 43}")

    refusals = {(method, path): refusal(await stranger.request(method, path)) for method, path in PROTECTED}

    assert refusals == dict.fromkeys(PROTECTED, (401, "invalid_api_key"))


@requirement("auth.invalid")
@pytest.mark.parametrize("key", ["nonsense", "hf_", "x" * 5000, "hf_' or 1=1 --", "ключ"])
@pytest.mark.parametrize(("header", "prefix"), [("X-API-Key", ""), ("Authorization", "Bearer ")])
async def test_an_invalid_key_is_answered_with_401(service: Service, key: str, header: str, prefix: str) -> None:
    response = await service.http.get("/api/events", headers=[(header.encode(), f"{prefix}{key}".encode())])

    assert refusal(response) == (401, "invalid_api_key")


@requirement("auth.invalid")
async def test_a_key_in_different_case_is_refused(service: Service) -> None:
    ada = await service.organizer()

    response = await service.http.get("/api/events", headers={"X-API-Key": str(ada.key).swapcase()})

    assert refusal(response) == (401, "invalid_api_key")


@requirement("auth.missing")
@pytest.mark.parametrize("headers", [{"X-API-Key": ""}, {"Authorization": "Basic YWRhOmFkYQ=="}, {"Authorization": ""}])
async def test_a_header_that_holds_no_key_is_refused(service: Service, headers: dict[str, str]) -> None:
    response = await service.http.get("/api/events", headers=headers)

    assert refusal(response) == (401, "missing_api_key")


@requirement("auth.missing")
async def test_a_key_in_the_query_is_ignored(service: Service) -> None:
    ada = await service.organizer()

    response = await service.http.get("/api/events", params={"api_key": str(ada.key)})

    assert refusal(response) == (401, "missing_api_key")


@requirement("auth.revoked")
async def test_a_revoked_key_is_refused_from_the_next_request_on(service: Service) -> None:
    ada = await service.organizer()
    [key] = unpaged_objects(await ada.get("/api/keys"), ApiKey)

    revoked = await ada.delete(f"/api/keys/{key.id}")

    assert revoked.status_code == 204
    assert refusal(await ada.get("/api/events")) == (401, "invalid_api_key")


@requirement("auth.revoked")
async def test_revoking_one_key_leaves_the_others_working(service: Service) -> None:
    ada = await service.organizer()
    spare = one(await ada.post("/api/keys", {"api_key": {"name": "Spare"}}), ApiKey, status=201)

    await ada.delete(f"/api/keys/{spare.id}")

    assert len(unpaged_objects(await ada.get("/api/keys"), ApiKey)) == 1
    answer = await service.http.get("/api/events", headers={"X-API-Key": spare.key})
    assert refusal(answer) == (401, "invalid_api_key")


@requirement("auth.header")
@pytest.mark.parametrize("header", ["X-API-Key", "Authorization"])
@pytest.mark.parametrize("method", ["GET", "POST"])
async def test_two_keys_in_one_request_are_answered_with_400(service: Service, header: str, method: str) -> None:
    ada = await service.organizer()
    key = ada.key if header == "X-API-Key" else f"Bearer {ada.key}"
    path = "/api/events" if method == "GET" else "/mcp"
    response = await service.http.request(method, path, headers=[(header, "hf_x"), (header, str(key))])

    assert (response.status_code, response.json()["code"]) == (400, "bad_request")
    assert header.lower() in response.json()["error"]

    twice = await service.http.get("/api/events", headers=[(header, str(key)), (header, str(key))])
    assert twice.status_code == 200
