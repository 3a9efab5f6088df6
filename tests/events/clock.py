"""Time, as far as one event knows it."""

from datetime import timedelta

from tests.helpers.events_service import Service


async def pass_by(service: Service, event_id: int, time: timedelta) -> None:
    """Let time pass for an event: what was is longer ago, and what is to come is nearer."""
    await service.run_sql(
        """
        with event as (
            update events set inserted_at = inserted_at - %(time)s, datetime = datetime - %(time)s,
                              recurs_from = recurs_from - %(time)s
             where id = %(id)s)
        update price_changes set "timestamp" = "timestamp" - %(time)s where event_id = %(id)s
        """,
        id=event_id,
        time=time,
    )
