"""Occurrences of a series: the fields they take from the one before, and where links to past ones lead."""

from holdfast.events.pages.event.cache import find_linked_events
from holdfast.events.photos.retention import clear_photos
from holdfast.kit.operations.steps import Steps
from tests.events.events.series import EVENING, all_events, continue_series_now, create_past_series
from tests.helpers.events_service import Service
from tests.helpers.photos import a_day_passes, read_photo, upload


async def test_an_occurrence_is_an_event_of_its_own_with_the_same_fields(service: Service) -> None:
    ada = await service.organizer()
    fields = {
        "title": "Printing",
        "price": 2500,
        "pricing_mode": "dynamic",
        "min_price": 1000,
        "max_price": 6000,
        "currency": "EUR",
        "capacity": 3,
        "waitinglist_capacity": 4,
        "recurrence_interval": 2,
        "address": "Rue de l'Université 1, 75007 Paris",
        "location_name": "Studio 4",
        "latitude": 48.8566,
        "longitude": 2.3522,
    }
    keys = [await upload(service, ada) for _ in range(2)]
    event = await ada.create_event(
        datetime=EVENING.isoformat(), recurrence_frequency="weeks", image_keys=keys, **fields
    )
    poll = await ada.register(event["id"], email="ann@example.com")
    await service.settle()

    await continue_series_now(service, EVENING)

    [was, following_id] = [occurrence["id"] for occurrence in await all_events(ada)]
    next_one = (await ada.get(f"/api/events/{following_id}")).json()["data"]
    assert was == event["id"]
    assert (next_one["datetime"], next_one["registration_count"]) == ("2027-02-14T18:30:00Z", 0)
    assert {name: next_one[name] for name in fields if name != "currency"} | {"currency": "EUR"} == fields
    assert next_one["current_price"] == 2500
    assert len(next_one["image_urls"]) == 2
    assert (next_one["image_urls"], next_one["primary_image_url"]) == (event["image_urls"], event["primary_image_url"])
    assert next_one["public_url"] == event["public_url"].replace(f"/{was}", f"/{following_id}")
    assert (await ada.get(poll)).json()["data"]["status"] == "registered"
    [first] = (await ada.get(f"/api/events/{following_id}/price_history")).json()["data"]
    assert (first["reason"], first["original_price"], first["new_price"]) == ("init", None, 2500)


OWN = {
    *("id", "datetime", "end_datetime", "registered_count", "waitlisted_count", "current_price", "cancelled_at"),
    *("inserted_at", "follows_id", "continued_at", "prices_thinned_at", "calendar_sequence"),
    *(
        "draw_at",
        "draw_round",
        "draw_round_at",
        "draw_confirmed",
        "draw_entries",
        "drawn_at",
        "draw_void_at",
        "draw_placed",
    ),
    *("takes_entries", "clock_length", "seats_passed_on", "queue_id"),
}
"""The columns that an occurrence does not copy. A new column must be put here or among those that are copied."""
SAME = {
    *("organizer_id", "title", "body", "capacity", "waitinglist_capacity", "currency", "pricing_mode"),
    *("price", "min_price", "max_price", "recurrence_frequency", "recurrence_interval", "recurs_from"),
    *("address", "location_name", "latitude", "longitude", "image_keys", "timezone", "cancellation_hours"),
    *("published", "public_log"),
}


async def test_every_column_of_an_event_is_carried_over_or_reset_in_the_next_occurrence(service: Service) -> None:
    ada = await service.organizer()
    await create_past_series(
        service,
        ada,
        pricing_mode="fixed",
        price=5,
        timezone="Asia/Tokyo",
        cancellation_hours=9,
        public_log=False,
        image_keys=[await upload(service, ada)],
    )
    await continue_series_now(service)

    [(was,), (is_now,)] = await service.run_sql("select to_json(events) from events order by id")

    assert set(was) == OWN | SAME
    assert {name: is_now[name] for name in SAME} == {name: was[name] for name in SAME}
    assert is_now["follows_id"] == was["id"]


async def test_a_photo_is_kept_for_the_occurrence_ahead_when_the_past_one_shows_it_no_more(service: Service) -> None:
    ada = await service.organizer()
    was = await create_past_series(service, ada, image_keys=[await upload(service, ada)])
    await continue_series_now(service)

    await ada.patch(f"/api/events/{was['id']}", {"event": {"image_keys": []}})
    await a_day_passes(service)
    await clear_photos(Steps(service.database))

    before, ahead = await all_events(ada)
    assert (before["image_urls"], ahead["image_urls"]) == ([], was["image_urls"])
    assert await read_photo(service, ahead["primary_image_url"])


async def test_a_moving_price_counts_from_the_day_its_occurrence_was_created(service: Service) -> None:
    ada = await service.organizer()
    event = {"pricing_mode": "dynamic", "price": 2500, "min_price": 1000, "max_price": 6000, "capacity": 10}
    await ada.create_event(datetime=EVENING.isoformat(), recurrence_frequency="weeks", **event)
    await continue_series_now(service, EVENING)

    assert await service.run_sql("select inserted_at from events order by id desc limit 1") == [(EVENING,)]


# The pages of past occurrences


async def to_show(service: Service, event_id: int) -> int | None:
    """The event that the page and the form of an event are for."""
    linked = await service.database.read(lambda reader: find_linked_events(reader, [event_id]))
    [event] = [linked_event.event.id for linked_event in linked] or [None]
    return event


async def test_a_link_to_a_past_occurrence_leads_to_the_one_ahead(service: Service) -> None:
    ada = await service.organizer()
    first = await create_past_series(service, ada)
    assert await to_show(service, first["id"]) == first["id"]
    for _ in range(3):
        await continue_series_now(service)
        ids = [occurrence["id"] for occurrence in await all_events(ada)]
        assert [await to_show(service, id) for id in ids] == [ids[-1]] * len(ids)
        await service.run_sql("update events set datetime = now() where id = %(id)s", id=ids[-1])


async def test_a_link_to_a_coming_or_single_event_leads_to_the_event_itself(service: Service) -> None:
    ada = await service.organizer()
    ahead, alone = (
        await ada.create_event(recurrence_frequency="days"),
        await create_past_series(service, ada, recurrence_frequency="none"),
    )

    assert await to_show(service, ahead["id"]) == ahead["id"]
    assert await to_show(service, alone["id"]) == alone["id"]
    assert await to_show(service, 4711) is None


async def test_a_link_to_a_past_occurrence_leads_to_the_cancelled_one_if_none_is_after_it(service: Service) -> None:
    ada = await service.organizer()
    first = await create_past_series(service, ada)
    await continue_series_now(service)
    [_, next_one] = await all_events(ada)

    await ada.delete(f"/api/events/{next_one['id']}")

    assert await to_show(service, first["id"]) == next_one["id"]
