"""How many photos an event shows, an organizer keeps unused, and a key adds in a minute."""

from typing import Any

from holdfast.events.photos.model import MAX_IDLE_PHOTOS, MAX_PHOTOS
from holdfast.events.settings import Settings
from tests.events.photos.site import PhotoSite
from tests.helpers.events_service import Client, Service, running_events
from tests.helpers.photos import add_photos, stored_files, upload
from tests.helpers.pictures import picture


async def full_event(service: Service, client: Client) -> dict[str, Any]:
    """An event with as many photos as it may have."""
    event = await client.create_event(image_keys=[await upload(service, client)])
    await service.run_sql(
        """
        with made as (
            insert into photos (key, organizer_id, state, content_type, content_length)
            select format('photos/%%s/%%s.png', organizer_id, lpad(number::text, 22, '0')), organizer_id, 'accepted',
                   'image/png', 1
              from events, generate_series(2, %(last_number)s) as number where id = %(id)s
            returning key)
        select count(*) from made
        """,
        id=event["id"],
        last_number=MAX_PHOTOS,
    )
    await service.run_sql(
        """
        update events set image_keys = (select array_agg(key) from photos where organizer_id = events.organizer_id)
         where id = %(id)s
        """,
        id=event["id"],
    )
    return event


async def test_an_event_shows_50_photos_at_most(service: Service, site: PhotoSite) -> None:
    ada = await service.organizer()
    event = await full_event(service, ada)

    for source in ({"url": site.publish("/a.jpg", picture())}, {"key": await upload(service, ada)}):
        refusal = await add_photos(ada, event, **source)
        assert (refusal.status_code, refusal.json()["code"]) == (422, "too_many_photos")
    assert site.request_count == 0


async def test_an_organizer_with_too_many_unused_photos_cannot_add_more(service: Service, site: PhotoSite) -> None:
    ada = await service.organizer()
    event = await ada.create_event()
    await service.run_sql(
        """
        insert into photos (key, organizer_id, content_type, content_length)
        select format('photos/%%s/%%s.png', %(id)s::bigint, lpad(number::text, 22, '0')), %(id)s, 'image/png', 1
          from generate_series(1, %(count)s) as number
        """,
        id=ada.id,
        count=MAX_IDLE_PHOTOS,
    )

    refusal = await add_photos(ada, event, url=site.publish("/a.jpg", picture()))

    assert (refusal.status_code, refusal.json()["code"]) == (422, "too_many_uploads")
    assert stored_files(service) == set()


async def test_a_key_adds_a_limited_number_of_photos_a_minute(settings: Settings) -> None:
    few = settings.model_copy(update={"photos_per_minute": 2})
    async with running_events(few) as service:
        ada, ben = await service.organizer(), await service.organizer()
        event, his = await ada.create_event(), await ben.create_event()
        statuses = [(await add_photos(ada, event, url="nothing")).status_code for _ in range(2)]

        refusal = await add_photos(ada, event, url="nothing")

        assert statuses == [422, 422]
        assert (refusal.status_code, refusal.json()["code"]) == (429, "rate_limited")
        assert 1 <= int(refusal.headers["Retry-After"]) <= 60
        assert (await add_photos(ben, his, url="nothing")).status_code == 422
        assert (await ada.post("/api/uploads/presign", {"content_type": "image/png", "content_length": 1})).is_success
