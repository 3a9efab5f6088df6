"""Example data, stored on the first start of `holdfast up`."""

from typing import NamedTuple

from holdfast.accounts.signin import links
from holdfast.events.events import operations as events
from holdfast.events.events.model import CreateEvent
from holdfast.events.keys.operations import mint
from holdfast.events.organizers import operations as organizers
from holdfast.events.organizers.accounts import ProveAccount, prove
from holdfast.events.organizers.model import RegisterOrganizer
from holdfast.events.paths import event_path
from holdfast.events.payments.onboarding import add_account
from holdfast.events.queues import operations as queues
from holdfast.events.queues.model import CreateQueue
from holdfast.events.resources import Tx
from holdfast.kit.caller import NOBODY, api_key

NAME = "Demo Organizer"
EMAIL = "demo@example.com"
SLUG = "demo-organizer"


class Keys(NamedTuple):
    """The keys that were made, which are not shown again."""

    admin: str
    organizer: str


async def begin(tx: Tx, account_id: str | None) -> tuple[Keys | None, list[tuple[str, str]]]:
    """Plant the example data if there is no data yet. Returns its keys then, and what there is to look at."""
    return await plant(tx, account_id), await look(tx)


async def plant(tx: Tx, account_id: str | None) -> Keys | None:
    """Create an admin key, an organizer with a key, events and a waiting room. None if there is data already.

    account_id    the organizer's account at the payment processor: with it, one of the events has a price
    """
    if await tx.value("select exists (select from users)"):
        return None
    admin = await mint(tx, None, "Demo admin")
    demo = await organizers.register(tx, NOBODY, RegisterOrganizer(name=NAME, email=EMAIL, slug=SLUG))
    organizer = api_key(demo.api_key.id, demo.organizer.id)
    # Nobody else can have made this account, so its owner is not asked who did.
    await prove(tx, organizer, ProveAccount(account_id=demo.organizer.id, session_id=0, keep=True))
    starts = await tx.value("select date_trunc('hour', now() + interval '30 days')")
    await events.publish(
        tx,
        organizer,
        CreateEvent(
            title="Open studio evening",
            body="Come and look around. Doors open at the hour; more at https://example.com/studio",
            datetime=starts,
            price=0,
            capacity=30,
            pricing_mode="free",
            waitinglist_capacity=10,
            location_name="Studio 4",
            timezone="Europe/Berlin",
        ),
    )
    await queues.create(
        tx,
        organizer,
        CreateQueue(
            title="Open studio evening",
            description="Six visitors a minute are let in, one after the other.",
            release_rate=6,
            target_url=f"{tx.resources.settings.base_url}/docs",
            token_ttl_minutes=10,
        ),
    )
    if account_id:
        await add_account(tx, demo.organizer.id, account_id, is_ready=True)
        await events.publish(
            tx,
            organizer,
            CreateEvent(
                title="Life drawing class",
                body="Two hours with a model. Paper and pencils are there.",
                datetime=starts,
                price=1250,
                currency="EUR",
                capacity=8,
                pricing_mode="fixed",
                waitinglist_capacity=4,
                location_name="Studio 4",
                timezone="Europe/Berlin",
            ),
        )
    return Keys(admin.key, demo.api_key.key)


async def look(tx: Tx) -> list[tuple[str, str]]:
    """What the example data has to look at: names and paths. The path of the console is a link that works once."""
    found = await tx.tuples(
        """
        select email,
               (select id from events where organizer_id = users.id and price = 0 order by id limit 1),
               (select id from events where organizer_id = users.id and price > 0 order by id limit 1),
               (select id from queues where organizer_id = users.id order by id limit 1)
          from users where slug = %(slug)s and email = %(email)s
        """,
        {"slug": SLUG, "email": EMAIL},
    )
    sights: list[tuple[str, str]] = []
    for email, free, paid, queue in found:
        if free:
            sights.append(("event page", event_path(SLUG, free)))
        if paid:
            sights.append(("card payment", event_path(SLUG, paid)))
        if queue:
            sights.append(("waiting room", f"/queues/{queue}"))
        sights.append(("organizer", links.address(tx.resources.secret, "", await links.make(tx, email, "/console"))))
    return sights
