"""The waiting room before an event shows how many seats and places are left there."""

from tests.events.queues.guarded import GuardedEvent, GuestBrowser, guard, page_text
from tests.helpers.events_service import Service


async def seats(guarded: GuardedEvent, guest: GuestBrowser) -> list[str]:
    """What the page of a guest, and the part of it that is the same for all, say."""
    await guarded.service.drop_caches()
    pages = [await guest.look(guest.room_path), await guest.look(f"/queues/{guarded.queue.id}/progress")]
    return [page_text(page) for page in pages]


async def test_a_guarded_room_says_how_many_seats_are_left(service: Service) -> None:
    guarded = await guard(service, capacity=2, waitinglist_capacity=1)
    guest = GuestBrowser(guarded)
    await guest.line_up()

    expected = (
        "2 seats are left at the event.",
        "1 seat is left at the event.",
        "When it is your turn, you can join the waiting list of the event.",
        "All seats are taken now, and the waiting list is full.",
    )
    for number, text in enumerate(expected):
        for page in await seats(guarded, guest):
            assert text in page
        if number < 3:
            await guarded.ada.register(guarded.id, email=f"guest{number}@example.com")
            await service.settle()

    await guarded.ada.delete(f"/api/events/{guarded.id}")
    assert all("Nobody can register for the event any more" in page for page in await seats(guarded, guest))


async def test_a_guarded_room_links_back_to_the_event(service: Service) -> None:
    guarded = await guard(service)
    guest = GuestBrowser(guarded)

    page = await guest.line_up()

    assert f'<a href="/events/{guarded.id}" target="_top">About the event</a>' in page.text
    assert (await guest.look(f"/events/{guarded.id}")).headers["location"] == guarded.path
