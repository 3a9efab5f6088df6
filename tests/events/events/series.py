"""Series of events: the dates they take place on, and letting one go on."""

from datetime import UTC, datetime
from typing import Any

from holdfast.events.events.model import Frequency
from holdfast.events.events.recurrence import continue_series, next_occurrence_at
from tests.helpers.events_service import Client, Service

EVENING = datetime(2027, 1, 31, 18, 30, tzinfo=UTC)


def dates(start: datetime, frequency: Frequency, interval: int, count: int) -> list[str]:
    """The days of `count` occurrences after the first."""
    occurrences: list[datetime] = [start]
    while len(occurrences) <= count:
        date = next_occurrence_at(start, frequency, interval, occurrences[-1])
        assert date
        assert date.timetz() == start.timetz()
        occurrences.append(date)
    return [f"{date:%Y-%m-%d}" for date in occurrences[1:]]


async def continue_series_now(service: Service, now: datetime | None = None) -> int:
    """Continue the series of events that are over; how many there were."""
    return await service.database.transact(lambda tx: continue_series(tx, now))


async def all_events(client: Client) -> list[dict[str, Any]]:
    return (await client.get("/api/events")).json()["data"]


async def create_past_series(service: Service, ada: Client, **fields: Any) -> dict[str, Any]:
    """A weekly event that took place yesterday, and has not been continued."""
    [(yesterday,)] = await service.run_sql("select date_trunc('second', now() - interval '1 day')")
    return await ada.create_event(**{"recurrence_frequency": "weeks", "datetime": yesterday.isoformat(), **fields})
