"""Messages that cannot be delivered are tried again, and an endpoint that fails costs others nothing."""

import asyncio
import datetime as dt
from email.utils import format_datetime

import pytest

from holdfast.kit.webhooks import sending
from holdfast.kit.webhooks.failures import FAILURES
from holdfast.kit.webhooks.sending import MAX_UNRELIABLE_ENDPOINTS, RETRY_SECONDS, DeliveryWork
from tests.helpers.events_service import Service, eventually
from tests.helpers.webhook_programs import OrganizerPrograms, change
from tests.helpers.webhook_receiver import ReceiverAnswer, deliver, fan_all_out


async def test_a_message_is_sent_again_with_the_same_id_until_it_is_taken(
    service: Service, programs: OrganizerPrograms
) -> None:
    ada = await service.organizer()
    program = await programs.add(ada)
    await ada.create_event()
    statuses = [500, 302, 0, 204]
    program.receiver.answer = lambda _: ReceiverAnswer(statuses.pop(0))

    for _ in range(5):
        await program.deliver()
        await program.pass_pauses()

    assert len({message.id for message in program.receiver.received}) == 1
    assert len(program.receiver.received) == 4
    [delivery] = await program.deliveries()
    assert (delivery["status"], delivery["attempts"]) == ("delivered", 4)
    answer = await ada.get(f"{program.path}/messages/{delivery['message_id']}/attempts")
    attempts = answer.json()["data"]
    assert [attempt["status"] for attempt in attempts] == [500, 302, None, 204]
    assert [attempt["reason"] for attempt in attempts] == ["status", "status", "broken", None]
    advice = FAILURES["status"].advice
    assert [attempt["error"] for attempt in attempts] == [
        f"The answer has the status 500. {advice}",
        f"The answer has the status 302. {advice}",
        f"The address broke off, or is not answered as HTTP has it. {FAILURES['broken'].advice}",
        None,
    ]


@pytest.mark.parametrize("call", ["ping", "messages/{id}/resend"])
async def test_a_test_or_a_message_that_is_sent_again_waits_for_no_pause_of_the_endpoint(
    service: Service, programs: OrganizerPrograms, call: str
) -> None:
    ada = await service.organizer()
    program = await programs.add(ada)
    await ada.create_event()
    program.receiver.answer = lambda _: ReceiverAnswer(500)
    await program.deliver()
    await service.run_sql("update webhook_endpoints set leased_until = now() + interval '5 minutes'")
    [failed] = program.receiver.received
    program.receiver.answer = lambda _: ReceiverAnswer()
    assert await program.deliver() == 0

    answer = await ada.post(f"{program.path}/{call.format(id=failed.id)}", {})

    assert answer.status_code in {200, 204}
    assert await program.deliver() == 1


async def test_the_pauses_between_attempts_are_those_of_the_specification_with_jitter(
    service: Service, programs: OrganizerPrograms
) -> None:
    ada = await service.organizer()
    program = await programs.add(ada)
    await ada.create_event()
    program.receiver.answer = lambda _: ReceiverAnswer(500)

    pauses: list[float] = []
    for _ in RETRY_SECONDS:
        await program.deliver()
        [(pause,)] = await service.run_sql(
            "select extract(epoch from due_at - now())::float8 from webhook_deliveries where due_at is not null"
        )
        pauses.append(pause)
        await program.pass_pauses()
    await program.deliver()

    assert all(least - 5 <= pause <= 1.2 * least for pause, least in zip(pauses, RETRY_SECONDS, strict=True))
    [delivery] = await program.deliveries()
    assert (delivery["status"], delivery["attempts"]) == ("failed", len(RETRY_SECONDS) + 1)


async def test_messages_that_fail_together_are_tried_again_at_different_times(
    service: Service, programs: OrganizerPrograms
) -> None:
    ada = await service.organizer()
    program = await programs.add(ada)
    for _ in range(4):
        await ada.create_event()
    program.receiver.answer = lambda _: ReceiverAnswer(500)

    await program.deliver()

    times = await service.run_sql("select due_at from webhook_deliveries where attempts = 1")
    assert len(set(times)) == len(times) > 1


@pytest.mark.parametrize("form", ["seconds", "date"])
async def test_the_time_that_a_receiver_asks_for_is_waited(
    service: Service, programs: OrganizerPrograms, form: str
) -> None:
    ada = await service.organizer()
    program = await programs.add(ada)
    await ada.create_event()
    then = dt.datetime.now(dt.UTC) + dt.timedelta(seconds=600)
    header = "600" if form == "seconds" else format_datetime(then, usegmt=True)
    program.receiver.answer = lambda _: ReceiverAnswer(429, {"Retry-After": header})

    await program.deliver()

    [delivery] = await program.deliveries()
    assert dt.datetime.fromisoformat(delivery["next_attempt_at"]) > then - dt.timedelta(seconds=10)


async def test_an_endpoint_that_answers_410_is_paused(service: Service, programs: OrganizerPrograms) -> None:
    ada = await service.organizer()
    program = await programs.add(ada)
    await ada.create_event()
    program.receiver.answer = lambda _: ReceiverAnswer(410)

    await program.deliver()
    await ada.create_event()
    await program.pass_pauses()
    await program.deliver()

    assert len(program.receiver.received) == 1
    answer = await ada.get(program.path)
    assert answer.json()["data"]["status"] == "paused"


async def test_an_endpoint_that_fails_for_days_can_be_paused(service: Service, programs: OrganizerPrograms) -> None:
    ada = await service.organizer()
    program = await programs.add(ada)
    await service.run_sql("update webhook_endpoints set status = 'failing', failing_since = now() - interval '6 days'")

    endpoint = await change(ada, program.path, active=False)
    await ada.create_event()
    await change(ada, program.path, active=True)

    assert (endpoint["status"], endpoint["failing_since"]) == ("paused", None)
    assert await program.deliver() == 0


async def test_an_endpoint_that_fails_for_five_days_is_switched_off_and_its_messages_wait(
    service: Service, programs: OrganizerPrograms
) -> None:
    ada = await service.organizer()
    program = await programs.add(ada, types=["event.created"])
    await ada.create_event()
    program.receiver.answer = lambda _: ReceiverAnswer(500)
    await program.deliver()
    await service.run_sql("update webhook_endpoints set failing_since = now() - interval '5 days 1 minute'")
    await program.pass_pauses()
    await program.deliver()

    assert (await ada.get(program.path)).json()["data"]["status"] == "failing"
    await ada.create_event()
    await program.pass_pauses()
    assert await program.deliver() == 0

    program.receiver.answer = lambda _: ReceiverAnswer()
    await change(ada, program.path, active=True)
    await program.pass_pauses()
    await program.deliver()
    assert [delivery["status"] for delivery in await program.deliveries()] == ["delivered", "delivered"]


async def test_only_one_message_at_a_time_is_tried_while_an_endpoint_fails(
    service: Service, programs: OrganizerPrograms
) -> None:
    ada = await service.organizer()
    program = await programs.add(ada, types=["event.created"])
    for _ in range(20):
        await ada.create_event()
    program.receiver.answer = lambda _: ReceiverAnswer(500)

    await program.deliver()
    first = len(program.receiver.received)
    await program.pass_pauses()
    await program.deliver()

    assert first <= sending.MAX_CONNECTIONS
    assert len(program.receiver.received) == first + 1


async def test_endpoints_that_fail_leave_half_of_the_places_to_others(
    service: Service, programs: OrganizerPrograms
) -> None:
    organizers = [await service.organizer() for _ in range(MAX_UNRELIABLE_ENDPOINTS + 2)]
    for ada in organizers:
        await programs.add(ada)
        await ada.create_event()
    await service.run_sql("update webhook_endpoints set failing_since = now()")
    last = await programs.add(await service.organizer())
    await last.organizer.create_event()
    await service.run_sql("update webhook_endpoints set leased_until = now() - id * interval '1 second'")
    await fan_all_out(service.database)
    work = DeliveryWork(service.database)

    rows = await work.lease(sending.MAX_ENDPOINTS, (), scan_all=True)

    assert len(rows) == MAX_UNRELIABLE_ENDPOINTS + 1
    assert last.endpoint["id"] in [row.key for row in rows]
    assert await work.lease(sending.MAX_ENDPOINTS - len(rows), (), scan_all=True) == []


async def test_an_organizer_with_many_endpoints_takes_only_its_share_of_the_places(
    service: Service, programs: OrganizerPrograms
) -> None:
    ada, ben = await service.organizer(), await service.organizer()
    for _ in range(sending.MAX_ENDPOINTS_OF_TENANT + 3):
        await programs.add(ada)
    other = await programs.add(ben)
    for organizer in (ada, ben):
        await organizer.create_event()
    await fan_all_out(service.database)
    work = DeliveryWork(service.database)

    rows = [*await work.lease(4, (), scan_all=True), *await work.lease(12, (), scan_all=True)]

    assert len(rows) == sending.MAX_ENDPOINTS_OF_TENANT + 1
    assert other.endpoint["id"] in [row.key for row in rows]


@pytest.mark.parametrize("url", ["http://127.0.0.1:1/", "http://10.0.0.1/", "http://[::1]/", "http://localhost/"])
async def test_a_message_is_never_sent_to_an_address_of_a_private_network(
    service: Service, programs: OrganizerPrograms, url: str
) -> None:
    ada = await service.organizer()
    program = await programs.add(ada)
    await service.run_sql("update webhook_endpoints set url = %(url)s", url=url)
    await ada.create_event()

    await program.deliver()

    [delivery] = await program.deliveries()
    answer = await ada.get(f"{program.path}/messages/{delivery['message_id']}/attempts")
    [attempt] = answer.json()["data"]
    assert attempt["status"] is None
    assert attempt["error"].startswith("The address ")


async def test_the_body_of_an_answer_is_read_only_up_to_a_bound(service: Service, programs: OrganizerPrograms) -> None:
    ada = await service.organizer()
    program = await programs.add(ada)
    await ada.create_event()
    program.receiver.answer = lambda _: ReceiverAnswer(200, body=b"x" * 5_000_000)

    await program.deliver()
    await eventually(lambda: asyncio.sleep(0, program.receiver.broken_off == 1))

    assert [delivery["status"] for delivery in await program.deliveries()] == ["delivered"]


async def test_a_receiver_that_never_answers_holds_up_no_other_program(
    service: Service, programs: OrganizerPrograms
) -> None:
    ada, ben = await service.organizer(), await service.organizer()
    slow, quick = await programs.add(ada), await programs.add(ben)
    slow.receiver.answer = lambda _: ReceiverAnswer(-1)
    for organizer in (ada, ben):
        await organizer.create_event()

    await deliver(service.database)

    [delivered], [waiting] = await quick.deliveries(), await slow.deliveries()
    answer = await ada.get(f"{slow.path}/messages/{waiting['message_id']}/attempts")
    [attempt] = answer.json()["data"]
    assert (delivered["status"], waiting["status"]) == ("delivered", "waiting")
    assert delivered["ended_at"] < attempt["attempted_at"]
