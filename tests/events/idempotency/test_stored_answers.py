"""An answer is kept for a day, sealed, for the API key that it was given to."""

from pathlib import Path

from holdfast.events.service import IDEMPOTENCY
from tests.events.idempotency.idempotency_scene import IdempotencyScene, status_and_code
from tests.helpers.events_service import Client, Service, running_events, unlimited

# Whose key it is


async def test_an_idempotency_key_of_another_organizer_is_a_different_key(scene: IdempotencyScene) -> None:
    eve = await scene.service.organizer("Eve Events")
    mine = await scene.create("K")
    hers = await scene.create("K", eve)

    assert hers.status_code == 201
    assert (mine.json()["data"]["organizer_id"], hers.json()["data"]["organizer_id"]) == (scene.ada.id, eve.id)


async def test_an_idempotency_key_of_another_api_key_is_a_different_key(scene: IdempotencyScene) -> None:
    made = await scene.ada.post("/api/keys", {"api_key": {"name": "One more"}})
    other = Client(scene.service.http, made.json()["data"]["key"])
    admins = [await scene.service.admin() for _ in range(2)]

    ids = [(await scene.create("K", client)).json()["data"]["id"] for client in (scene.ada, other)]
    ids += [(await scene.create("K", admin, organizer_id=scene.ada.id)).json()["data"]["id"] for admin in admins]

    assert len(set(ids)) == 4


async def test_a_caller_without_a_valid_api_key_gets_no_stored_answer(scene: IdempotencyScene) -> None:
    await scene.create("K")

    assert status_and_code(await scene.create("K", scene.service.anonymous)) == (401, "missing_api_key")
    stranger = Client(scene.service.http, "hf_" + "A" * 43)
    assert status_and_code(await scene.create("K", stranger)) == (401, "invalid_api_key")


# A day


async def test_after_a_day_a_key_may_be_used_for_something_else(scene: IdempotencyScene) -> None:
    first = await scene.create("K")
    await scene.service.run_sql("update idempotency_answers set inserted_at = now() - interval '24 hours'")

    second = await scene.create("K", title="Portraits")

    assert second.status_code == 201
    assert second.json()["data"]["id"] != first.json()["data"]["id"]
    assert (await scene.create("K", title="Portraits")).content == second.content


async def test_answers_older_than_a_day_are_deleted(scene: IdempotencyScene) -> None:
    for key, hours in (("old", 25), ("young", 23)):
        await scene.create(key)
        await scene.service.run_sql(
            "update idempotency_answers set inserted_at = now() - make_interval(hours => %(hours)s)"
            " where inserted_at > now() - interval '1 hour'",
            hours=hours,
        )

    assert await scene.service.database.transact(IDEMPOTENCY.forget_answers) == 1
    assert await scene.count_stored_answers() == 1


# Secrets


async def test_a_secret_in_a_repeated_answer_is_never_stored_in_plain_text(scene: IdempotencyScene) -> None:
    body = {"api_key": {"name": "One more"}}
    first = await scene.ada.post("/api/keys", body, headers={"Idempotency-Key": "my-own-idempotency-key"})
    secret = first.json()["data"]["key"]

    again = await scene.ada.post("/api/keys", body, headers={"Idempotency-Key": "my-own-idempotency-key"})

    assert again.json()["data"]["key"] == secret
    [(row,)] = await scene.service.run_sql("select idempotency_answers::text from idempotency_answers")
    # Bytes are shown in hexadecimal.
    for readable in (secret, "One more", "my-own-idempotency-key"):
        assert readable not in row
        assert readable.encode().hex() not in row


async def test_an_answer_sealed_with_another_secret_is_refused_and_not_done_again(
    scene: IdempotencyScene, database_url: str, tmp_path: Path
) -> None:
    await scene.create("K")
    before = await scene.count()

    async with running_events(unlimited(database_url, tmp_path / "elsewhere")) as other:
        refusal = await scene.create("K", Client(other.http, scene.ada.key))

    assert status_and_code(refusal) == (422, "idempotency_key_reused")
    assert "another secret key" in refusal.json()["error"]
    assert await scene.count() == before


async def test_registering_an_organizer_takes_no_idempotency_key(service: Service) -> None:
    body = {"organizer": {"name": "Ada Events", "email": "ada@example.com", "slug": "ada-events"}}
    first, again = [
        await service.anonymous.post("/api/organizers/register", body, headers={"Idempotency-Key": "K"})
        for _ in range(2)
    ]

    assert first.status_code == 201
    assert status_and_code(again) == (422, "validation_failed")
    assert set(again.json()["errors"]) == {"email", "slug"}
    assert "hf_" not in again.text
    assert await service.run_sql("select from idempotency_answers") == []
