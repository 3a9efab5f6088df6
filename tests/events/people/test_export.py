"""Exporting a person: everything that is stored about them, and nothing about others."""

from datetime import UTC, datetime

import msgspec

from tests.helpers.events_service import Service
from tests.helpers.form_browser import Browser
from tests.helpers.people import erase, export_person, handle_of, mentions, sign_up


async def test_an_export_has_the_account_each_registration_and_each_mail(service: Service) -> None:
    ada, ben = await service.organizer("Ada Events"), await service.organizer("Ben Events")
    ends_at = "2040-06-01T19:00:00Z"
    seat = await ada.create_event(title="Life drawing", timezone="Europe/Berlin", ends_at=ends_at)
    paid = await ben.create_event(title="Pottery", pricing_mode="fixed", price=1500, capacity=1)
    await sign_up(service, seat, "ann", "bob")
    await ben.register(paid["id"], email="ann@example.com", amount_paid=1200)
    await service.settle()
    await service.run_sql("update mails set outcome = 'sent', ended_at = now() where kind = 'seat' and id = 1")

    exported = await export_person(service)

    assert exported.account
    assert (exported.account.email, exported.account.user_id) == (
        "ann@example.com",
        await handle_of(service, "ann@example.com"),
    )
    first, second = exported.registrations
    assert (first.event, first.organizer, first.name, first.language, first.status) == (
        "Life drawing",
        "Ada Events",
        "Ann Example",
        "en",
        "registered",
    )
    assert (first.timezone, first.mails_wanted) == ("Europe/Berlin", True)
    assert first.ends_at == datetime(2040, 6, 1, 19, tzinfo=UTC)
    assert (second.event, second.organizer, second.noted_amount, second.currency) == (
        "Pottery",
        "Ben Events",
        1200,
        "USD",
    )
    assert [(mail.kind, mail.event_id, mail.outcome) for mail in exported.mails] == [
        ("seat", seat["id"], "sent"),
        ("seat", paid["id"], "waiting"),
    ]


async def test_an_export_has_every_stored_column_about_the_person(service: Service) -> None:
    ada = await service.organizer()
    event = await ada.create_event()
    await sign_up(service, event, "ann")
    columns = {
        column
        for table in ("registrations", "mails")
        for (column,) in await service.run_sql(
            "select column_name from information_schema.columns where table_name = %(table)s", table=table
        )
    }

    exported = msgspec.to_builtins(await export_person(service))

    exported_fields = {*exported["registrations"][0], *exported["mails"][0]}
    renamed = {"notify": "mails_wanted", "details_at": "details_sent_again_at", "inserted_at": "caused_at"}
    renamed |= {"amount_paid": "noted_amount"}
    inner = {"organizer_id", "user_id", "arrival", "id", "thread", "bulk", "due_at", "recipient", "arguments"}
    inner |= {"hold", "released_at", "counted_for", "counted_at", "form_digest"}
    assert {renamed.get(column, column) for column in columns - inner} <= exported_fields


async def test_an_export_has_sessions_and_requested_links(service: Service) -> None:
    await Browser(service).sign_in("ann@example.com")
    await Browser(service).ask("ann@example.com")
    await Browser(service).sign_in("bob@example.com")

    exported = await export_person(service)

    assert exported.account
    assert exported.account.proved_at
    assert [(session.way, session.browser) for session in exported.sessions] == [("link", "Firefox of a test")]
    assert [link.used_at is not None for link in exported.sign_in_links] == [True, False]


async def test_an_export_says_nothing_of_others(service: Service) -> None:
    ada = await service.organizer()
    event = await ada.create_event(capacity=1, waitinglist_capacity=5)
    await sign_up(service, event, "bob", "ann")

    exported = msgspec.json.encode(await export_person(service)).decode()

    assert not mentions(exported, "bob")
    assert await handle_of(service, "bob@example.com") not in exported


async def test_the_export_of_a_new_account_after_an_erasure_has_nothing_of_the_old_one(service: Service) -> None:
    ada = await service.organizer()
    before, after = await ada.create_event(), await ada.create_event()
    await sign_up(service, before, "ann")
    await erase(service)
    await sign_up(service, after, "ann")

    exported = await export_person(service)

    assert [registration.event_id for registration in exported.registrations] == [after["id"]]
    assert [mail.event_id for mail in exported.mails] == [after["id"]]
