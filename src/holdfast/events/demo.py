"""Example data, stored on the first start of `holdfast up`."""

from typing import NamedTuple

from holdfast.events.events import operations as events
from holdfast.events.events.model import CreateEvent
from holdfast.events.keys.operations import mint
from holdfast.events.organizers import operations as organizers
from holdfast.events.organizers.model import RegisterOrganizer
from holdfast.events.queues import operations as queues
from holdfast.events.queues.model import CreateQueue
from holdfast.events.resources import Tx
from holdfast.kit.caller import NOBODY, api_key


class Planted(NamedTuple):
    admin_key: str
    organizer_key: str
    email: str
    slug: str
    event_id: int
    queue_id: int


async def plant(tx: Tx) -> Planted | None:
    """Create an admin key, an organizer with a key, a free event and a waiting room. None if there is data already."""
    if await tx.value("select exists (select from users)"):
        return None
    admin = await mint(tx, None, "Demo admin")
    demo = await organizers.register(
        tx, NOBODY, RegisterOrganizer(name="Demo Organizer", email="demo@example.com", slug="demo-organizer")
    )
    starts = await tx.value("select date_trunc('hour', now() + interval '30 days')")
    organizer = api_key(demo.api_key.id, demo.organizer.id)
    event = await events.publish(
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
    queue = await queues.create(
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
    return Planted(admin.key, demo.api_key.key, demo.organizer.email, demo.organizer.slug, event.id, queue.id)
