"""When an endpoint answers again, messages that failed are sent soon, a few at a time, the oldest first."""

import datetime as dt

import pytest

from holdfast.kit.webhooks.sending import MAX_BROUGHT_FORWARD, RETRY_SECONDS
from tests.helpers.events_service import Client, Service
from tests.helpers.webhook_programs import OrganizerProgram, OrganizerPrograms
from tests.helpers.webhook_receiver import ReceiverAnswer


@pytest.fixture
async def ada(service: Service) -> Client:
    return await service.organizer()


@pytest.fixture
async def program(ada: Client, programs: OrganizerPrograms) -> OrganizerProgram:
    return await programs.add(ada, types=["event.created"])


async def fail(program: OrganizerProgram, times: int) -> None:
    """Let all that waits have failed a number of times each, a moment ago."""
    program.receiver.answer = lambda _: ReceiverAnswer(500)
    await program.deliver()
    await program.service.run_sql(
        "update webhook_deliveries set attempts = %(times)s, due_at = now() + interval '1 hour'", times=times
    )
    await program.service.run_sql("update webhook_endpoints set leased_until = now(), next_due_at = null, failures = 3")
    program.receiver.answer = lambda _: ReceiverAnswer()
    program.receiver.received.clear()


async def test_messages_that_failed_are_sent_when_the_endpoint_answers_again_the_oldest_first(
    ada: Client, program: OrganizerProgram
) -> None:
    for _ in range(3 * MAX_BROUGHT_FORWARD):
        await ada.create_event()
    await fail(program, times=3)
    ids = [delivery["message_id"] for delivery in await program.deliveries()]

    await ada.post(f"{program.path}/ping", {})
    await program.deliver()

    received = [message.id for message in program.receiver.received]
    assert program.receiver.types[0] == "ping"
    assert sorted(received[1:], key=ids.index) == ids
    for at in range(0, len(ids), MAX_BROUGHT_FORWARD):
        assert {*received[1:][at : at + MAX_BROUGHT_FORWARD]} == {*ids[at : at + MAX_BROUGHT_FORWARD]}
    assert {delivery["status"] for delivery in await program.deliveries()} == {"delivered"}


async def test_a_message_whose_fault_is_its_own_keeps_its_pauses_and_holds_up_no_other(
    service: Service, ada: Client, program: OrganizerProgram
) -> None:
    await ada.create_event(title="Bad")
    await fail(program, times=4)
    program.receiver.answer = lambda message: ReceiverAnswer(
        500 if message.content["data"].get("title") == "Bad" else 204
    )

    for _ in range(12):
        await service.run_sql("update webhook_endpoints set leased_until = now()")
        await ada.create_event()
        await program.deliver()

    [bad, *others] = await program.deliveries()
    pause = dt.datetime.fromisoformat(bad["next_attempt_at"]) - dt.datetime.now(dt.UTC)
    assert (bad["status"], bad["attempts"]) == ("waiting", 4 + 5)
    assert RETRY_SECONDS[3] - 60 < pause.total_seconds() < RETRY_SECONDS[3] * 1.2
    assert {other["status"] for other in others} == {"delivered"}


async def test_a_message_that_failed_once_is_left_to_its_first_further_attempt(
    ada: Client, program: OrganizerProgram
) -> None:
    await ada.create_event()
    program.receiver.answer = lambda _: ReceiverAnswer(500)
    await program.deliver()
    program.receiver.answer = lambda _: ReceiverAnswer()

    await ada.post(f"{program.path}/ping", {})
    await program.deliver()

    assert [delivery["status"] for delivery in await program.deliveries()] == ["waiting", "delivered"]


@pytest.mark.parametrize("status", [429, 500, 503])
async def test_an_endpoint_that_asks_for_time_gets_no_other_message_until_then(
    service: Service, ada: Client, program: OrganizerProgram, status: int
) -> None:
    await ada.create_event()
    program.receiver.answer = lambda _: ReceiverAnswer(status, {"Retry-After": "600"})
    await program.deliver()
    await ada.create_event()

    await program.deliver()

    assert len(program.receiver.received) == 1
    until = dt.datetime.fromisoformat((await ada.get(program.path)).json()["data"]["waits_until"])
    assert 590 < (until - dt.datetime.now(dt.UTC)).total_seconds() <= 600


async def test_an_endpoint_with_too_much_to_do_gets_nothing_for_a_moment_although_it_took_other_messages(
    service: Service, ada: Client, program: OrganizerProgram
) -> None:
    for _ in range(2):
        await ada.create_event()
    statuses = [204, 502]
    program.receiver.answer = lambda _: ReceiverAnswer(statuses.pop(0))

    await program.deliver()

    [(pause, failing_since)] = await service.run_sql(
        "select extract(epoch from leased_until - now())::float8, failing_since from webhook_endpoints"
    )
    assert 0.5 < pause <= 1
    assert failing_since is None
