"""Keys are made, listed with their secret masked, and revoked."""

from typing import Any

import pytest

from tests.contract.requirements import requirement
from tests.contract.shapes import ApiKey, Event, failing_fields, objects_on_page, one, refusal, unpaged_objects
from tests.helpers.events_service import Client, Service


async def make_key(client: Client, name: str = "Box office", **fields: Any) -> ApiKey:
    return one(await client.post("/api/keys", {"api_key": {"name": name, **fields}}), ApiKey, status=201)


@requirement("keys.create")
async def test_a_new_key_is_shown_in_full_and_works(service: Service) -> None:
    ada = await service.organizer()
    event = await ada.create_event()

    key = await make_key(ada, "Box office")

    assert (key.name, key.active) == ("Box office", True)
    events = objects_on_page(await Client(service.http, key.key).get("/api/events"), Event)
    assert [event.id for event in events] == [event["id"]]


@requirement("keys.create", "keys.list")
async def test_a_listed_key_shows_its_first_8_characters_and_no_more(service: Service) -> None:
    ada = await service.organizer()
    made = await make_key(ada)

    response = await ada.get("/api/keys")

    listed_key = unpaged_objects(response, ApiKey)[-1].key
    assert listed_key[:8] == made.key[:8]
    assert set(listed_key[8:]) == {"*"}
    assert made.key[8:] not in response.text


@requirement("keys.create")
async def test_two_new_keys_differ_also_in_their_first_8_characters(service: Service) -> None:
    ada = await service.organizer()

    keys = {(await make_key(ada)).key for _ in range(5)}

    assert len(keys) == 5
    assert len({key[:8] for key in keys}) == 5


@requirement("keys.list")
async def test_a_listed_key_is_the_key_that_was_made(service: Service) -> None:
    ada = await service.organizer()
    made = await make_key(ada, "Box office")

    [_, listed_key] = unpaged_objects(await ada.get("/api/keys"), ApiKey)

    assert listed_key == ApiKey(made.id, "Box office", listed_key.key, True, made.inserted_at, ada.id)


@requirement("keys.list", "keys.revoke")
async def test_a_revoked_key_is_no_longer_listed(service: Service) -> None:
    ada = await service.organizer()
    made = await make_key(ada)

    await ada.delete(f"/api/keys/{made.id}")

    assert made.id not in [key.id for key in unpaged_objects(await ada.get("/api/keys"), ApiKey)]


@requirement("keys.list.scope", "auth.organizer-scope")
async def test_an_organizer_lists_its_own_keys_only(service: Service) -> None:
    ada, ben = await service.organizer(), await service.organizer()
    await make_key(ada)
    await make_key(ben)

    assert [key.user_id for key in unpaged_objects(await ada.get("/api/keys"), ApiKey)] == [ada.id, ada.id]


@requirement("keys.list.scope", "auth.admin")
async def test_an_admin_lists_the_keys_of_all_and_those_of_admins_without_a_user(new_service: Service) -> None:
    ada, ben = await new_service.organizer(), await new_service.organizer()
    admin = await new_service.admin()

    assert [key.user_id for key in unpaged_objects(await admin.get("/api/keys"), ApiKey)] == [ada.id, ben.id, None]


@requirement("keys.create.name", "errors.validation")
@pytest.mark.parametrize("fields", [{}, {"name": None}, {"name": 1}, {"name": ""}])
async def test_a_key_without_a_name_is_refused(service: Service, fields: dict[str, Any]) -> None:
    ada = await service.organizer()

    assert failing_fields(await ada.post("/api/keys", {"api_key": fields})) == {"name"}
    assert len(unpaged_objects(await ada.get("/api/keys"), ApiKey)) == 1


@requirement("keys.create.self")
async def test_a_key_an_organizer_makes_is_its_own(service: Service) -> None:
    ada = await service.organizer()

    assert (await make_key(ada)).user_id == ada.id


@requirement("keys.revoke")
async def test_revoking_answers_204_without_a_body(service: Service) -> None:
    ada = await service.organizer()
    made = await make_key(ada)

    response = await ada.delete(f"/api/keys/{made.id}")

    assert (response.status_code, response.content) == (204, b"")


@requirement("keys.revoke", "auth.revoked")
async def test_a_revoked_key_is_refused_at_once_although_it_was_in_use(service: Service) -> None:
    ada = await service.organizer()
    keys = [await make_key(ada) for _ in range(5)]
    clients = [Client(service.http, key.key) for key in keys]
    assert [(await client.get("/api/events")).status_code for client in clients] == [200] * 5

    answers: list[int] = []
    for key, client in zip(keys, clients, strict=True):
        await ada.delete(f"/api/keys/{key.id}")
        answers.append((await client.get("/api/events")).status_code)

    assert answers == [401] * 5


@requirement("keys.revoke")
async def test_a_key_that_does_not_exist_cannot_be_revoked(service: Service) -> None:
    ada = await service.organizer()

    assert refusal(await ada.delete("/api/keys/4711")) == (404, "not_found")


@requirement("keys.revoke.scope")
async def test_the_key_of_another_organizer_cannot_be_revoked(service: Service) -> None:
    ada, eve = await service.organizer(), await service.organizer()
    made = await make_key(ada)

    assert refusal(await eve.delete(f"/api/keys/{made.id}")) == (403, "forbidden")

    assert (await Client(service.http, made.key).get("/api/events")).status_code == 200


@requirement("keys.revoke.scope")
async def test_the_key_of_an_admin_cannot_be_revoked_by_an_organizer(new_service: Service) -> None:
    admin, eve = await new_service.admin(), await new_service.organizer()
    [id] = [key.id for key in unpaged_objects(await admin.get("/api/keys"), ApiKey) if key.user_id is None]

    assert refusal(await eve.delete(f"/api/keys/{id}")) == (403, "forbidden")

    assert (await admin.get("/api/events")).status_code == 200


@requirement("keys.revoke.scope", "auth.admin")
async def test_an_admin_revokes_the_key_of_any_organizer(service: Service) -> None:
    admin, ada = await service.admin(), await service.organizer()
    made = await make_key(ada)

    assert (await admin.delete(f"/api/keys/{made.id}")).status_code == 204

    assert refusal(await Client(service.http, made.key).get("/api/events")) == (401, "invalid_api_key")
