"""The database refuses what must never happen to photos."""

import pytest
from psycopg import errors

from tests.helpers.events_service import Service
from tests.helpers.photos import photo_states, presign, upload


async def test_a_photo_that_an_event_shows_cannot_be_given_up(service: Service) -> None:
    ada = await service.organizer()
    await ada.create_event(image_keys=[await upload(service, ada)])

    for statement in (
        "update photos set state = 'doomed'",
        "update photos set state = 'awaited'",
        "delete from photos",
    ):
        with pytest.raises(errors.ForeignKeyViolation):
            await service.run_sql(statement)


@pytest.mark.parametrize("state", ["awaited", "doomed", "unknown"])
async def test_the_schema_refuses_to_show_a_photo_that_is_not_accepted(service: Service, state: str) -> None:
    ada = await service.organizer()
    key = (await presign(ada, b"x" * 9))["key"]
    event = await ada.create_event()
    if state == "unknown":
        key = key.replace(".jpg", ".png")
    else:
        await service.run_sql("update photos set state = %(state)s", state=state)

    with pytest.raises(errors.ForeignKeyViolation):
        await service.run_sql(
            "update events set image_keys = array[%(key)s] where id = %(id)s", key=key, id=event["id"]
        )


async def test_a_copy_of_an_event_shows_its_photos_too(service: Service) -> None:
    ada = await service.organizer()
    key = await upload(service, ada)
    event = await ada.create_event(image_keys=[key])

    await service.run_sql(
        """
        insert into events (organizer_id, title, body, datetime, capacity, waitinglist_capacity, currency, pricing_mode,
                            price, recurrence_frequency, recurrence_interval, recurs_from, image_keys)
        select organizer_id, title, body, datetime, capacity, waitinglist_capacity, currency, pricing_mode,
               price, recurrence_frequency, recurrence_interval, recurs_from, image_keys
          from events where id = %(id)s
        """,
        id=event["id"],
    )
    await ada.patch(f"/api/events/{event['id']}", {"event": {"image_keys": []}})

    assert await service.run_sql("select key, idle_since from photos") == [(key, None)]
    with pytest.raises(errors.ForeignKeyViolation):
        await service.run_sql("update photos set state = 'doomed'")


@pytest.mark.parametrize(
    ("key", "organizer"),
    [
        ("photos/{id}/short.jpg", "{id}"),
        ("photos/{id}/../abcdefghijklmnopqrstuv.jpg", "{id}"),
        ("photos/{id}/abcdefghijklmnopqrstuv.svg", "{id}"),
        ("photos/0/abcdefghijklmnopqrstuv.jpg", "{id}"),
        ("photos/9{id}/abcdefghijklmnopqrstuv.jpg", "{id}"),
        ("photos/admin/abcdefghijklmnopqrstuv.jpg", "{id}"),
        ("photos/{id}/abcdefghijklmnopqrstuv.jpg", None),
    ],
)
async def test_the_schema_refuses_a_key_without_its_organizer(
    service: Service, key: str, organizer: str | None
) -> None:
    ada = await service.organizer()

    with pytest.raises(errors.CheckViolation):
        await service.run_sql(
            """
            insert into photos (key, organizer_id, content_type, content_length)
            values (%(key)s, %(organizer)s::bigint, 'image/jpeg', 1)
            """,
            key=key.format(id=ada.id),
            organizer=organizer and organizer.format(id=ada.id),
        )
    assert await photo_states(service) == {}


@pytest.mark.parametrize("wrong", ["widths = '{480}'", "width = 400, height = 300, widths = '{400, 480}'", "width = 0"])
async def test_a_size_is_never_wider_than_its_photo(service: Service, wrong: str) -> None:
    ada = await service.organizer()
    await upload(service, ada)

    with pytest.raises(errors.CheckViolation):
        await service.run_sql(f"update photos set {wrong}")
