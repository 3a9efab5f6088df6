"""The page of an organizer is rendered once for many, and never shown when something on it has changed."""

import pytest
from prometheus_client import REGISTRY

from holdfast.events.settings import Settings
from tests.helpers.events_service import Service, eventually, running_events


@pytest.mark.usefixtures("only_notices_end_caches")
async def test_a_change_is_shown_on_the_page_of_the_organizer_by_every_process(settings: Settings) -> None:
    async with running_events(settings) as one, running_events(settings) as other:
        ada = await one.organizer("Ada Events")
        event = await ada.create_event(title="Life drawing", capacity=3, pricing_mode="fixed", price=500)
        draft = await ada.create_event(title="A draft", published=False)

        async def texts() -> list[str]:
            """The page: in the process that changed it at once, and in the other one when that has heard."""
            first = await one.http.get(f"/organizers/{ada.slug}")
            await other.wait_for_notices()
            return [page.text for page in (first, await other.http.get(f"/organizers/{ada.slug}"))]

        async def edit(id: int, **fields: object) -> None:
            assert (await ada.patch(f"/api/events/{id}", {"event": fields})).status_code == 200

        async def sql(statement: str) -> None:
            await other.run_sql(statement, id=ada.id)
            await one.wait_for_notices()

        changes = {
            "a title": lambda: edit(event["id"], title="Watercolours"),
            "a price": lambda: edit(event["id"], price=900),
            "a place": lambda: edit(event["id"], address="Studio 4"),
            "a draft is published": lambda: edit(draft["id"], published=True),
            "a new event": lambda: ada.create_event(title="Another one"),
            "seats": lambda: sql("update events set registered_count = 1 where organizer_id = %(id)s"),
            "photos": lambda: sql(
                f"update events set image_keys = array['{photo}'] where organizer_id = %(id)s and published"
            ),
            "the sizes of a photo": lambda: sql(
                "update photos set widths = '{480}', width = 480, height = 300 where organizer_id = %(id)s"
            ),
            "words": lambda: sql("update users set about = 'We draw.' where id = %(id)s"),
            "an accent": lambda: sql("update users set accent = '#8a1f6b' where id = %(id)s"),
            "a logo": lambda: sql(f"update users set logo_key = '{photo}' where id = %(id)s"),
            "a name": lambda: sql("update users set name = 'Ben Events' where id = %(id)s"),
            "an event is cancelled": lambda: ada.delete(f"/api/events/{event['id']}"),
            "no longer proved": lambda: sql("update users set proved_at = null where id = %(id)s"),
        }
        photo = f"photos/{ada.id}/{'a' * 22}.png"
        await sql(
            "insert into photos (key, organizer_id, state, content_type, content_length)"
            f" values ('{photo}', %(id)s, 'accepted', 'image/png', 1)"
        )
        before = await texts()
        for what, change in changes.items():
            await change()
            after = await texts()
            assert after[0] == after[1] != before[0], what
            before = after

        await sql("update users set slug = 'elsewhere' where id = %(id)s")
        gone = [await process.http.get(f"/organizers/{ada.slug}") for process in (one, other)]

    assert "Unconfirmed organizer" in before[0]
    assert [page.status_code for page in gone] == [404, 404]


@pytest.mark.usefixtures("only_notices_end_caches")
async def test_a_crowd_at_one_organizer_asks_the_database_once(service: Service) -> None:
    ada = await service.organizer()
    await ada.create_event()
    await service.wait_for_notices()

    def reads() -> float:
        return REGISTRY.get_sample_value("holdfast_batch_calls_count", {"batch": "read_organizer"}) or 0

    before = reads()
    pages = [
        await service.http.get(f"/organizers/{ada.slug}", headers={"Accept-Language": language})
        for language in ("de", "en", "de", "en")
    ]
    known = await service.http.get(f"/organizers/{ada.slug}", headers={"If-None-Match": pages[0].headers["etag"]})

    assert reads() == before + 1
    assert ['<html lang="de"' in page.text for page in pages] == [True, False, True, False]
    assert known.status_code == 200  # the browser asks for English, and has the German page


async def test_an_event_that_begins_moves_to_the_past_events_of_its_organizer(service: Service) -> None:
    ada = await service.organizer()
    await ada.create_event()
    await service.run_sql("update events set datetime = clock_timestamp() + interval '300 ms'")
    first = await service.http.get(f"/organizers/{ada.slug}")

    async def is_past() -> bool:
        return "Past events" in (await service.http.get(f"/organizers/{ada.slug}")).text

    assert "Past events" not in first.text
    await eventually(is_past)
