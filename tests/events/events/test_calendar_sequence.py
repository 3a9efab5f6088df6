"""`calendar_sequence` counts the changes that calendars show: they take a newer entry for an older one by it."""

from typing import Any

import pytest

from tests.helpers.events_service import Client, Service

EVENT = {
    "title": "Etching",
    "datetime": "2031-05-01T18:00:00Z",
    "ends_at": "2031-05-01T20:00:00Z",
    "timezone": "Europe/Berlin",
    "location_name": "Studio 4",
    "address": "Long Lane 1",
}


async def calendar_sequence(service: Service) -> int:
    [(sequence,)] = await service.run_sql("select calendar_sequence from events")
    return sequence


async def change(client: Client, **fields: Any) -> None:
    answer = await client.patch("/api/events/1", {"event": fields})
    assert answer.status_code == 200, answer.text


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("title", "Drypoint"),
        ("datetime", "2031-05-01T18:00:01Z"),
        ("ends_at", "2031-05-01T20:00:01Z"),
        ("ends_at", None),
        ("timezone", "Europe/Paris"),
        ("timezone", None),
        ("location_name", "Studio 5"),
        ("location_name", None),
        ("address", "Long Lane 2"),
        ("address", None),
    ],
)
async def test_a_change_that_calendars_show_raises_the_sequence_number_once(
    service: Service, field: str, value: str | None
) -> None:
    ada = await service.organizer()
    await ada.create_event(**EVENT)
    assert await calendar_sequence(service) == 0

    await change(ada, **{field: value})
    assert await calendar_sequence(service) == 1
    await change(ada, **{field: value})
    assert await calendar_sequence(service) == 1
    await change(ada, **{field: EVENT[field]})
    assert await calendar_sequence(service) == 2


async def test_several_changed_fields_raise_the_sequence_number_once(service: Service) -> None:
    ada = await service.organizer()
    await ada.create_event(**EVENT)

    await change(ada, title="Drypoint", address=None, timezone="UTC")

    assert await calendar_sequence(service) == 1


async def test_a_change_that_calendars_do_not_show_leaves_the_sequence_number(service: Service) -> None:
    ada = await service.organizer()
    await ada.create_event(**EVENT, pricing_mode="dynamic", price=10, min_price=5, max_price=20)

    await change(ada, body="Bring ink.", capacity=3, waitinglist_capacity=2, cancellation_hours=5)
    await change(ada, price=11, min_price=6, max_price=21, recurrence_frequency="weeks", recurrence_interval=2)
    await change(ada, **EVENT)
    for name in ("ann", "ben", "cal", "dan"):
        await ada.register(1, email=f"{name}@example.com")
    await service.settle()

    assert await calendar_sequence(service) == 0


async def test_a_cancellation_raises_the_sequence_number_once(service: Service) -> None:
    ada = await service.organizer()
    await ada.create_event(**EVENT)

    for _ in range(2):
        await ada.delete("/api/events/1")
        assert await calendar_sequence(service) == 1
