"""A secret is rotated while the old one is still accepted; after that the old one is needed no more."""

import asyncio

import httpx2

from holdfast.events.settings import Settings
from tests.helpers.command_line import run_holdfast
from tests.helpers.events_service import Service, event_fields, running_events
from tests.helpers.photos import presign, put_upload
from tests.helpers.pictures import picture

FIRST, SECOND = "1" * 32, "2" * 32


async def test_signing_keys_stored_answers_and_upload_addresses_survive_a_rotation_of_the_secret(
    settings: Settings,
) -> None:
    def under(secret: str, old: str = "") -> Settings:
        return settings.model_copy(update={"secret_key": secret, "old_secret_key": old})

    async def signing_keys(service: Service) -> object:
        return (await service.http.get("/.well-known/queue-jwks.json")).json()

    async def create(service: Service, body: object, key: str) -> httpx2.Response:
        headers = {"X-API-Key": key, "Idempotency-Key": "one"}
        return await service.http.post("/api/events", json=body, headers=headers)

    async with running_events(under(FIRST)) as service:
        ada = await service.organizer()
        keys = await signing_keys(service)
        body = {"event": event_fields()}
        made = await create(service, body, str(ada.key))
        upload = (await presign(ada, picture()))["upload_url"]
    async with running_events(under(SECOND, FIRST)) as service:
        again = await create(service, body, str(ada.key))
        assert (again.status_code, again.content) == (201, made.content)
        assert await signing_keys(service) == keys
        assert (await put_upload(service, upload, picture())).status_code == 200
    done = await asyncio.to_thread(
        run_holdfast,
        "events",
        "reseal",
        EVENTS_DATABASE_URL=settings.database_url,
        EVENTS_SECRET_KEY=SECOND,
        EVENTS_OLD_SECRET_KEY=FIRST,
    )
    assert done.stdout == (
        "agent_requests: 0 sealed again.\n"
        "queue_signing_keys: 1 sealed again.\n"
        "log_keys: 0 sealed again.\n"
        "idempotency_answers: 1 sealed again.\n"
        "push_subscriptions: 0 sealed again.\n"
        "trusted_auth_keys: 0 sealed again.\n"
        "webhook_endpoints: 0 sealed again.\n"
    )
    async with running_events(under(SECOND)) as service:
        again = await create(service, body, str(ada.key))
        assert (again.status_code, again.content) == (201, made.content)
        assert await signing_keys(service) == keys
