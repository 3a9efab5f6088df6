"""Jobs delete expired data, a portion at a time."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from holdfast.events.keys import key_retention
from holdfast.events.registrations import retention
from holdfast.events.resources import Tx
from holdfast.events.seats import intake
from holdfast.events.service import IDEMPOTENCY
from holdfast.events.settings import Settings
from holdfast.kit.background.tasks import in_batches
from holdfast.kit.mail import outbox
from holdfast.kit.operations import idempotency
from holdfast.kit.operations.steps import Steps
from tests.helpers.events_service import Service, eventually
from tests.helpers.payments import open_payment_scene


async def run(service: Service, job: Callable[[Tx], Awaitable[int]]) -> int:
    return await in_batches(job)(Steps(service.database))


async def forget_registrants(service: Service) -> int:
    return await retention.forget_registrants(Steps(service.database))


async def addresses(service: Service) -> list[str]:
    return [email for (email,) in await service.run_sql("select email from users where role = 'user' order by email")]


async def age(service: Service) -> None:
    """Make every account two days old."""
    await service.run_sql("update users set inserted_at = now() - interval '2 days'")


# API keys


async def test_keys_that_were_revoked_a_month_ago_are_deleted(service: Service) -> None:
    ada = await service.organizer()
    for name in ("Old", "Young"):
        made = (await ada.post("/api/keys", {"api_key": {"name": name}})).json()["data"]
        await ada.delete(f"/api/keys/{made['id']}")
    await service.run_sql("update api_keys set revoked_at = now() - interval '31 days' where name = 'Old'")

    assert await run(service, key_retention.forget_keys) == 1

    assert await service.run_sql("select name from api_keys order by id") == [("First key",), ("Young",)]


async def test_expired_rows_are_deleted_in_batches(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(key_retention, "DELETE_BATCH_SIZE", 3)
    monkeypatch.setattr(idempotency, "DELETE_BATCH_SIZE", 3)
    monkeypatch.setattr(retention, "REJECTION_BATCH_SIZE", 3)
    ada = await service.organizer()
    event = await ada.create_event(capacity=1, datetime="2031-01-01T00:00:00Z")
    for number in range(8):
        await ada.register(event["id"], email=f"{number}@example.com")
    await service.settle()
    await service.run_sql(
        """
        insert into api_keys (user_id, name, start, hash, active, revoked_at)
        select %(id)s, 'Old', '12345678', sha256(n::text::bytea), false, now() - interval '31 days'
          from generate_series(1, 8) as n
        """,
        id=ada.id,
    )
    await service.run_sql(
        """
        insert into idempotency_answers (id, fingerprint, sealed, inserted_at)
        select sha256(n::text::bytea), sha256(''), '', now() - interval '25 hours' from generate_series(1, 8) as n
        """
    )
    await service.run_sql("update events set datetime = now() - interval '31 days'")
    await service.run_sql("update registrations set settled_at = now() - interval '31 days'")

    jobs = (key_retention.forget_keys, IDEMPOTENCY.forget_answers, retention.forget_rejections)
    first_batch = [await service.database.transact(job) for job in jobs]
    the_others = [await run(service, job) for job in jobs]

    assert first_batch == [3, 3, 3]
    assert the_others == [5, 5, 4]
    assert await service.run_sql("select status from registrations") == [("registered",)]


# People


async def test_people_without_a_registration_are_deleted_and_others_stay(service: Service) -> None:
    ada = await service.organizer(email="ada@example.com")
    event = await ada.create_event(capacity=1)
    polls = {name: await ada.register(event["id"], email=f"{name}@example.com") for name in ("ann", "ben", "cal")}
    await service.settle()
    await ada.register((await ada.create_event())["id"], email="dee@example.com")
    await ada.delete(polls["ann"])
    await age(service)

    assert await forget_registrants(service) == 1
    assert await forget_registrants(service) == 0

    assert await addresses(service) == ["ben@example.com", "cal@example.com", "dee@example.com"]
    assert (await ada.get("/api/events")).status_code == 200
    assert (await ada.get(polls["ann"])).json()["code"] == "not_found"


async def test_a_person_with_a_payment_is_kept_and_holds_up_no_deletion_of_others(settings: Settings) -> None:
    async with open_payment_scene(settings) as scene:
        service, ada = scene.service, await scene.organizer()
        await scene.register(await scene.event(ada), "buyer@example.com")
        await scene.time_is_up()
        await ada.delete(await ada.register((await ada.create_event())["id"], email="left@example.com"))
        await service.run_sql("delete from registrations")
        await age(service)

        assert await forget_registrants(service) == 1
        assert await addresses(service) == ["buyer@example.com"]


async def test_an_account_of_today_and_one_with_a_password_stay(service: Service) -> None:
    ada = await service.organizer()
    for name in ("young", "secret"):
        await ada.delete(await ada.register((await ada.create_event())["id"], email=f"{name}@example.com"))
    await service.run_sql(
        """
        update users set inserted_at = now() - interval '2 days', password_hash = 'x'
         where email = 'secret@example.com'
        """
    )

    assert await forget_registrants(service) == 0
    assert await addresses(service) == ["secret@example.com", "young@example.com"]


async def test_accounts_are_scanned_and_deleted_in_batches(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retention, "ACCOUNT_SCAN_SIZE", 3)
    monkeypatch.setattr(retention, "ACCOUNT_BATCH_SIZE", 2)
    ada = await service.organizer()
    event = await ada.create_event()
    for number in range(10):
        poll = await ada.register(event["id"], email=f"{number}@example.com")
        if number % 2:
            await ada.delete(poll)
    await age(service)

    assert await forget_registrants(service) == 5
    assert await addresses(service) == [f"{number}@example.com" for number in range(0, 10, 2)]


async def test_a_person_registered_during_the_deletion_keeps_the_account(service: Service) -> None:
    ada = await service.organizer()
    event = await ada.create_event()
    poll = await ada.register(event["id"], email="ann@example.com")
    await ada.delete(poll)
    await age(service)

    async with service.database.transaction() as tx:
        ann = intake.IntakeRequest(ada.id, event["id"], email="ann@example.com")
        [accepted] = await intake.store_pending(tx, [ann])
        forgetting = asyncio.create_task(forget_registrants(service))
        await eventually(lambda: service.run_sql("select from pg_locks where not granted"))
    assert await forgetting == 0

    assert accepted.is_stored
    assert await service.settle() == 1
    assert (await ada.get(poll)).json()["data"]["status"] == "registered"


async def test_a_deleted_person_may_register_again(service: Service) -> None:
    ada = await service.organizer()
    event = await ada.create_event()
    first = await ada.register(event["id"], email="ann@example.com")
    await ada.delete(first)
    await age(service)
    await forget_registrants(service)

    again = await ada.register(event["id"], email="ann@example.com")
    await service.settle()

    assert again != first
    assert (await ada.get(again)).json()["data"]["email"] == "ann@example.com"


# Mails


async def test_mails_are_deleted_a_month_after_they_ended(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outbox, "DELETE_BATCH_SIZE", 3)
    await service.run_sql(
        """
        insert into mails (kind, thread, recipient, arguments, inserted_at, ended_at, outcome, error)
        select 'seat', n::text, 'ann@example.com', '{}', now() - interval '40 days',
               now() - case when n <= 8 then interval '31 days' else interval '29 days' end,
               case when n %% 2 = 0 then 'sent' else 'failed' end, '550 nobody'
          from generate_series(1, 10) as n
        """
    )
    await service.run_sql(
        """
        insert into mails (kind, thread, recipient, arguments, inserted_at)
        values ('seat', 'waits', 'ann@example.com', '{}', now() - interval '40 days')
        """
    )

    assert await service.database.transact(outbox.forget_mails) == 3
    assert await run(service, outbox.forget_mails) == 5

    assert await service.run_sql("select thread from mails order by id") == [("9",), ("10",), ("waits",)]
