"""The page of an event says everything that people need to decide."""

from tests.events.pages.reading import readable_text
from tests.helpers.events_service import Service

PAGE = {"Accept": "text/html"}


async def test_the_public_address_of_an_event_is_a_page(service: Service) -> None:
    ada = await service.organizer("Ada Events")
    event = await ada.create_event(title="Life drawing", body="Bring a **pencil**. https://example.com/studio")

    page = await service.http.get(event["public_url"], headers=PAGE)

    assert page.status_code == 200
    assert page.headers["content-type"] == "text/html; charset=utf-8"
    assert '<h1 dir="auto">Life drawing</h1>' in page.text
    assert "Bring a <strong>pencil</strong>." in page.text
    assert (
        '<a href="https://example.com/studio" rel="noopener nofollow ugc">https://example.com/studio</a>' in page.text
    )
    assert f'<a href="/organizers/{ada.slug}"><bdi>Ada Events</bdi></a>' in page.text
    assert "0 of 10 taken 10 seats left" in readable_text(page)
    organizer = await service.http.get(f"/organizers/{ada.slug}", headers=PAGE)
    assert (organizer.status_code, organizer.headers["content-type"]) == (200, "text/html; charset=utf-8")
    assert '<p class="price" data-count="price">Free</p>' in page.text


async def test_the_address_of_an_event_with_a_wrong_slug_or_id_is_a_404_page(service: Service) -> None:
    ada, ben = await service.organizer(), await service.organizer()
    event = await ada.create_event()

    for path in (
        f"/organizers/{ben.slug}/events/{event['id']}",
        f"/organizers/{ada.slug}/events/{event['id'] + 1}",
        f"/organizers/{ada.slug}/events/0{event['id']}",
        f"/organizers/{ada.slug}/events/none",
        f"/organizers/nobody/events/{event['id']}",
        f"/organizers/{ada.slug}/events/{10**18}",
        f"/organizers/{ada.slug}/events/{10**19}",
    ):
        page = await service.http.get(path, headers=PAGE)
        assert (page.status_code, "There is no such page." in page.text) == (404, True), path
        assert "noindex" in page.text


async def test_a_cancelled_event_says_so_first(service: Service) -> None:
    ada = await service.organizer()
    event = await ada.create_event()
    await ada.delete(f"/api/events/{event['id']}")

    page = await service.http.get(event["public_url"])

    assert page.status_code == 200
    assert "This event is cancelled." in page.text
    assert "seats left" not in page.text
    assert "https://schema.org/EventCancelled" in page.text


async def test_a_past_event_says_so_first(service: Service) -> None:
    ada = await service.organizer()
    event = await ada.create_event()
    await service.run_sql("update events set datetime = now() - interval '1 hour'")

    page = await service.http.get(event["public_url"])

    assert "This event is over." in page.text
    assert "seats left" not in page.text


async def test_a_page_shows_every_change_at_the_next_request(service: Service) -> None:
    ada = await service.organizer()
    event = await ada.create_event(capacity=2, waitinglist_capacity=2)
    path = f"/api/events/{event['id']}"
    seen: list[str] = []

    async def look() -> None:
        seen.append(readable_text(await service.http.get(event["public_url"])))

    await look()
    await ada.register(event["id"], email="one@example.com")
    await service.settle()
    await look()
    await ada.register(event["id"], email="two@example.com")
    await ada.register(event["id"], email="three@example.com")
    await service.settle()
    await look()
    await ada.patch(path, {"event": {"title": "Watercolours"}})
    await look()
    await ada.delete(path)
    await look()

    assert "0 of 2 taken 2 seats left" in seen[0]
    assert "1 of 2 taken 1 seat left" in seen[1]
    assert "All seats are taken. Free 1 person is waiting. You would be number 2." in seen[2]
    assert "Watercolours" in seen[3]
    assert "This event is cancelled." in seen[4]


async def test_the_event_page_says_once_how_the_order_is_fair_and_a_framed_form_leads_there(
    service: Service,
) -> None:
    event = await (await service.organizer()).create_event()

    page, frame = [(await service.http.get(event[name])).text for name in ("public_url", "embed_url")]

    before, _, after = page.partition("</form>")
    assert [part.count('href="/log/') for part in (before, after)] == [0, 1]
    assert [part.count("How is this fair?") for part in (before, after)] == [0, 1]
    before, _, after = frame.partition("</form>")
    assert [part.count(f'href="/events/{event["id"]}#order" target="_top"') for part in (before, after)] == [0, 1]
    assert 'href="/log/' not in frame


async def test_a_full_event_without_a_waiting_list_says_so_and_leads_to_other_events(service: Service) -> None:
    ada = await service.organizer()
    event = await ada.create_event(capacity=1)
    while_open = await service.http.get(event["public_url"])
    await ada.register(event["id"], email="ann@example.com")
    await service.settle()

    for page in [await service.http.get(event[name]) for name in ("public_url", "embed_url")]:
        assert "All seats are taken. Free This event has no waiting list." in readable_text(page)
        assert "If a registration is cancelled, you can register here." in page.text
        assert f'<a class="button" href="/organizers/{ada.slug}"' in page.text
    assert "Other events of the organizer" not in while_open.text
