"""Example data, stored on the first start of `holdfast up`."""

import asyncio
import datetime as dt
from typing import LiteralString, NamedTuple

import msgspec

from holdfast.accounts.signin import links
from holdfast.events.events import operations as events
from holdfast.events.events.model import CreateEvent
from holdfast.events.keys.operations import insert_key
from holdfast.events.organizers import branding
from holdfast.events.organizers import operations as organizers
from holdfast.events.organizers.accounts import prove
from holdfast.events.organizers.model import RegisterOrganizer
from holdfast.events.paths import event_path
from holdfast.events.payments.payout_rows import add_account, store_readiness
from holdfast.events.photos import acceptance, sizes
from holdfast.events.photos.model import PhotoRow, new_key
from holdfast.events.queues import operations as queues
from holdfast.events.queues.model import CreateQueue
from holdfast.events.registrations import accepting
from holdfast.events.registrations.model import AcceptRegistration
from holdfast.events.resources import Tx
from holdfast.kit.contract.caller import ADMIN, Caller, api_key
from holdfast.kit.operations.operation import Batch, Call
from holdfast_demo.data.photos import CONTENT_TYPE, draw_photo

NAME = "Demo Organizer"
EMAIL = "demo@example.com"
SLUG = "demo-organizer"
ABOUT = "A studio with a yard, and open doors. These events are examples: nobody meets there."
ACCENT = "#8a3b6b"
"""A plum, so that pages show that the accent is the organizer's."""

GUESTS = 11
"""The people who have a seat at the event that is nearly full: all but one of its seats."""


BEGINS: LiteralString = """
    select (date_trunc('day', now() at time zone 'Europe/Berlin') + interval '30 days 19 hours')
           at time zone 'Europe/Berlin'
"""
"""When the first event begins: at seven in the evening, 30 days from now."""


class DemoKeys(NamedTuple):
    """The new API keys. They are shown only once."""

    admin: str
    organizer: str


async def begin(tx: Tx, account_id: str | None) -> tuple[DemoKeys | None, list[tuple[str, str]]]:
    """Store the example data if the database is empty. Returns its keys or None, and the addresses to look at."""
    return await store_examples(tx, account_id), await list_addresses(tx)


async def store_examples(tx: Tx, account_id: str | None) -> DemoKeys | None:
    """Create an admin key, an organizer with a key, events and a waiting room. Returns None if there is data already.

    account_id    the organizer's account at the payment processor: with it, one of the events has a price
    """
    if await tx.value("select exists (select from users)"):
        return None
    admin = await insert_key(tx, None, "Demo admin")
    demo = await organizers.register(tx, ADMIN, RegisterOrganizer(name=NAME, email=EMAIL, slug=SLUG))
    organizer = api_key(demo.api_key.id, demo.organizer.id)
    # This code made the account, so its owner need not be asked who made it.
    await prove(tx, demo.organizer.id)
    await branding.change(tx, organizer, branding.ChangeBranding(accent=ACCENT, about=ABOUT))
    starts: dt.datetime = await tx.value(BEGINS)
    await _publish(
        tx,
        organizer,
        "studio",
        CreateEvent(
            title="Open studio evening",
            body="Come and look around. Doors open at the hour; more at https://example.com/studio",
            datetime=starts,
            ends_at=starts + dt.timedelta(hours=4),
            price=0,
            capacity=30,
            pricing_mode="free",
            waitinglist_capacity=10,
            location_name="Studio 4",
            timezone="Europe/Berlin",
        ),
    )
    if account_id:
        await add_account(tx, demo.organizer.id, account_id)
        await store_readiness(tx, account_id, True)
        await _publish(
            tx,
            organizer,
            "drawing",
            CreateEvent(
                title="Life drawing class",
                body="Two hours with a model. Paper and pencils are there.",
                datetime=starts + dt.timedelta(days=7),
                ends_at=starts + dt.timedelta(days=7, hours=2),
                price=1250,
                currency="EUR",
                capacity=8,
                pricing_mode="fixed",
                waitinglist_capacity=4,
                location_name="Studio 4",
                timezone="Europe/Berlin",
            ),
        )
    concert = await _publish(
        tx,
        organizer,
        "concert",
        CreateEvent(
            title="Courtyard concert",
            body="Songs under lamps, in the yard behind the studio. **One seat is left**; others can wait.",
            datetime=starts + dt.timedelta(days=14),
            price=0,
            capacity=GUESTS + 1,
            pricing_mode="free",
            waitinglist_capacity=6,
            location_name="The yard",
            timezone="Europe/Berlin",
        ),
    )
    walk = await _publish(
        tx,
        organizer,
        None,
        CreateEvent(
            title="Lantern walk",
            body="Along the river after dark. Lanterns are lit in the yard; bring a warm coat.",
            datetime=starts + dt.timedelta(days=21),
            ends_at=starts + dt.timedelta(days=21, hours=2),
            price=0,
            capacity=40,
            pricing_mode="free",
            waitinglist_capacity=10,
            location_name="The yard",
            timezone="Europe/Berlin",
        ),
    )
    await queues.create(
        tx,
        organizer,
        CreateQueue(
            title="Lantern walk",
            description="Six visitors a minute are let in, one after the other.",
            release_rate=6,
            event_id=walk,
            token_ttl_minutes=10,
        ),
    )
    # These people do not exist, so no mail is sent to them.
    guests = [
        AcceptRegistration(event_id=concert, email=f"guest{number}@example.com", notify=False)
        for number in range(1, GUESTS + 1)
    ]
    await accepting.accept(tx, Batch(0, [Call(organizer, guest) for guest in guests]))
    return DemoKeys(admin.key, demo.api_key.key)


async def _publish(tx: Tx, organizer: Caller, photo: str | None, event: CreateEvent) -> int:
    """Publish an event with one of the drawn photos; without one, its title makes one. Returns its id."""
    if photo is None:
        return (await events.publish(tx, organizer, event, None)).id
    content = await asyncio.to_thread(draw_photo, photo)
    key = new_key(organizer.tenant_id, CONTENT_TYPE)
    await acceptance.insert_awaited_photo(
        tx, PhotoRow(key, organizer.tenant_id, CONTENT_TYPE, len(content)), upload=False
    )
    await tx.resources.photos.write(key, content, CONTENT_TYPE)
    await sizes.accept_photos(tx, [key])
    published = await events.publish(tx, organizer, msgspec.structs.replace(event, image_keys=[key]), None)
    return published.id


async def list_addresses(tx: Tx) -> list[tuple[str, str]]:
    """The names and paths of the example pages. The path of the console is a sign-in link that works once."""
    rows = await tx.tuples(
        """
        select (select id from events where organizer_id = users.id and price = 0 order by id limit 1),
               (select id from events where organizer_id = users.id and price = 0 order by id offset 1 limit 1),
               (select id from events where organizer_id = users.id and price > 0 order by id limit 1),
               (select id from queues where organizer_id = users.id order by id limit 1)
          from users where slug = %(slug)s and email = %(email)s
        """,
        {"slug": SLUG, "email": EMAIL},
    )
    addresses: list[tuple[str, str]] = []
    for free_event, crowded_event, paid_event, queue in rows:
        if free_event:
            addresses.append(("event page", event_path(SLUG, free_event)))
        if crowded_event:
            addresses.append(("one seat left", event_path(SLUG, crowded_event)))
        if paid_event:
            addresses.append(("card payment", event_path(SLUG, paid_event)))
        if queue:
            addresses.append(("waiting room", f"/queues/{queue}"))
        link_id = await organizers.console_link(tx, SLUG)
        addresses.append(("organizer", links.link_url(tx.resources.secret, "", link_id)))
    return addresses
