"""Messages of webhooks are kept for 30 days, and nothing of them after that."""

import pytest

from holdfast.kit.webhooks.endpoints import forget_messages
from tests.helpers.events_service import Service
from tests.helpers.webhook_programs import OrganizerProgram, OrganizerPrograms

TABLES = ("webhook_messages", "webhook_subjects", "webhook_deliveries", "webhook_attempts")


@pytest.fixture
async def program(service: Service, programs: OrganizerPrograms) -> OrganizerProgram:
    return await programs.add(await service.organizer())


async def counts(service: Service) -> list[int]:
    """The number of rows of each table."""
    return [(await service.run_sql(f"select count(*) from {table}"))[0][0] for table in TABLES]


async def age(service: Service, days: int) -> None:
    await service.run_sql(f"update webhook_messages set created_at = created_at - interval '{days} days'")


async def test_a_message_leaves_no_row_after_thirty_days(service: Service, program: OrganizerProgram) -> None:
    await program.organizer.create_event()
    await program.deliver()
    await age(service, 29)
    assert await service.database.transact(forget_messages) == 0
    assert await counts(service) == [1, 1, 1, 1]

    await age(service, 2)
    assert await service.database.transact(forget_messages) == 1

    assert await counts(service) == [0, 0, 0, 0]


async def test_a_subject_with_a_younger_message_keeps_its_numbers(service: Service, program: OrganizerProgram) -> None:
    event = await program.organizer.create_event()
    await program.deliver()
    await age(service, 31)
    for title in ("Second", "Third"):
        await program.organizer.patch(f"/api/events/{event['id']}", {"event": {"title": title}})
        await program.deliver()
        await service.database.transact(forget_messages)

    assert await counts(service) == [2, 1, 2, 2]
    assert await service.run_sql("select number from webhook_deliveries order by number") == [(2,), (3,)]


async def test_a_subject_without_messages_for_thirty_days_begins_at_one_again(
    service: Service, program: OrganizerProgram
) -> None:
    event = await program.organizer.create_event()
    await program.deliver()
    await age(service, 31)
    await service.database.transact(forget_messages)
    await program.organizer.patch(f"/api/events/{event['id']}", {"event": {"title": "Later"}})
    await program.deliver()

    assert await service.run_sql("select number from webhook_deliveries") == [(1,)]
