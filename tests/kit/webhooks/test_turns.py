"""Tenants take turns, and so do endpoints: many messages, locked rows and slow receivers of one delay no other."""

from holdfast.kit.webhooks import sending
from holdfast.kit.webhooks.fan_out import FAN_OUT_BATCH_SIZE, MAX_TENANTS, fan_out
from holdfast.kit.webhooks.sending import MAX_UNRELIABLE_ENDPOINTS, DeliveryWork
from tests.helpers.events_service import Service
from tests.helpers.row_work import handle_all
from tests.helpers.webhook_programs import OrganizerProgram, OrganizerPrograms
from tests.helpers.webhook_receiver import deliver, fan_all_out

STORE_MESSAGES = """
    insert into webhook_messages (tenant_id, type, subject, data)
    select tenant, 'event.changed', 'event 1', '{}'
      from generate_series(%(first)s::bigint, %(last)s::bigint) as tenant, generate_series(1, %(count)s::bigint)
"""


async def count_waiting(service: Service, program: OrganizerProgram) -> int:
    """How many messages wait until they are fanned out for a program."""
    [(count,)] = await service.run_sql(
        "select count(*) from webhook_messages join webhook_endpoints using (tenant_id)"
        " where webhook_endpoints.id = %(id)s and not is_fanned_out",
        id=program.endpoint["id"],
    )
    return count


async def test_a_tenant_with_many_messages_delays_those_of_no_other(
    service: Service, programs: OrganizerPrograms
) -> None:
    ada, ben = await service.organizer(), await service.organizer()
    busy, calm = await programs.add(ada), await programs.add(ben)
    await service.run_sql(STORE_MESSAGES, first=ada.id, last=ada.id, count=3 * FAN_OUT_BATCH_SIZE)
    await ben.create_event()

    batch = await service.database.transact(fan_out)

    assert await count_waiting(service, calm) == 0
    assert await count_waiting(service, busy) == 3 * FAN_OUT_BATCH_SIZE - (batch.messages - 1)
    assert FAN_OUT_BATCH_SIZE // 2 <= batch.messages <= FAN_OUT_BATCH_SIZE


async def test_the_messages_of_more_tenants_than_a_batch_has_are_taken_in_turns(service: Service) -> None:
    tenants = MAX_TENANTS + 5
    await service.run_sql(
        STORE_MESSAGES, first=1_001, last=1_000 + tenants, count=FAN_OUT_BATCH_SIZE // MAX_TENANTS + 1
    )

    first = await service.database.transact(fan_out)
    second = await service.database.transact(lambda tx: fan_out(tx, after=first.last or 0))
    third = await service.database.transact(fan_out)

    assert (first.tenants, first.last, first.messages) == (MAX_TENANTS, 1_000 + MAX_TENANTS, FAN_OUT_BATCH_SIZE)
    assert (second.tenants, second.messages) == (5, 5 * (FAN_OUT_BATCH_SIZE // MAX_TENANTS + 1))
    assert (third.tenants, third.messages) == (MAX_TENANTS, MAX_TENANTS)
    assert await service.run_sql("select count(*) from webhook_messages where not is_fanned_out") == [(0,)]


async def test_a_locked_endpoint_delays_its_own_tenant_only(service: Service, programs: OrganizerPrograms) -> None:
    ada, ben = await service.organizer(), await service.organizer()
    locked, other = await programs.add(ada), await programs.add(ben)
    for organizer in (ada, ben):
        await organizer.create_event()

    async with service.database.transaction() as tx:
        await tx.tuples("select from webhook_endpoints where id = %(id)s for update", {"id": locked.endpoint["id"]})
        batch = await service.database.transact(fan_out)
        assert (batch.tenants, batch.free_tenants) == (2, 1)
        assert (await count_waiting(service, locked), await count_waiting(service, other)) == (1, 0)

    await deliver(service.database)
    assert locked.receiver.types == ["event.created"]


async def test_a_receiver_that_answers_slowly_loses_its_place_after_its_turn(
    service: Service, programs: OrganizerPrograms
) -> None:
    ada = await service.organizer()
    program = await programs.add(ada, types=["event.created"])
    await service.run_sql("update webhook_endpoints set is_slow = true")
    for _ in range(MAX_UNRELIABLE_ENDPOINTS):
        other = await service.organizer()
        await programs.add(other)
        await other.create_event()
    await service.run_sql("update webhook_endpoints set is_slow = true")
    quick = await programs.add(await service.organizer())
    await quick.organizer.create_event()
    await ada.create_event()
    await fan_all_out(service.database)

    rows = await DeliveryWork(service.database).lease(sending.MAX_ENDPOINTS, (), scan_all=True)

    assert len(rows) == MAX_UNRELIABLE_ENDPOINTS + 1
    assert quick.endpoint["id"] in [row.key for row in rows]
    assert program.receiver.received == []


async def test_no_message_is_begun_after_the_turn_of_an_endpoint(service: Service, programs: OrganizerPrograms) -> None:
    ada = await service.organizer()
    program = await programs.add(ada, types=["event.changed"])
    await service.run_sql(STORE_MESSAGES, first=ada.id, last=ada.id, count=sending.MESSAGES_PER_READ)
    await fan_all_out(service.database)
    work = DeliveryWork(service.database, turn_seconds=0)

    [row] = await work.lease(1, (), scan_all=True)
    count = await work.handle(row)

    assert count <= sending.MAX_CONNECTIONS
    assert len(program.receiver.received) == count
    await handle_all(DeliveryWork(service.database))
    assert len(program.receiver.received) == sending.MESSAGES_PER_READ


async def test_an_endpoint_that_took_long_is_noted_until_it_is_quick_again(
    service: Service, programs: OrganizerPrograms
) -> None:
    ada = await service.organizer()
    program = await programs.add(ada, types=["event.created"])
    work = DeliveryWork(service.database, slow_seconds=0)
    await ada.create_event()
    await fan_all_out(service.database)
    await handle_all(work)
    assert await service.run_sql("select is_slow from webhook_endpoints") == [(True,)]

    await ada.create_event()
    await program.deliver()
    assert await service.run_sql("select is_slow from webhook_endpoints") == [(False,)]
