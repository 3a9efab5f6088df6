"""After any history of outages, nothing waits for a far attempt once the endpoint answers, and no attempt is lost."""

import asyncio
import contextlib
import os
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any, Literal, NamedTuple

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from holdfast.kit.webhooks.sending import MAX_CONNECTIONS, RETRY_SECONDS
from tests.helpers.databases import scratch_database
from tests.helpers.events_service import Service, running_events, unlimited
from tests.helpers.webhook_programs import OrganizerProgram, OrganizerPrograms, programs_of
from tests.helpers.webhook_receiver import ReceivedMessage, ReceiverAnswer

SOAK = bool(os.environ.get("HOLDFAST_SOAK"))

STORE_MESSAGES = """
    insert into webhook_messages (tenant_id, type, subject, data)
    select %(tenant)s, 'event.changed', 'event ' || number %% 3, '{}'
      from generate_series(1, %(count)s::bigint) as number
"""


class Step(NamedTuple):
    """A while in the life of an endpoint.

    messages    new messages
    mood        what it answers: to all the same, or to each message of one subject
    passes      which pauses pass before its next turn
    """

    messages: int
    mood: Literal["takes all", "fails", "fails for one subject", "breaks off"]
    passes: Literal["that of the endpoint", "all"]


steps = st.lists(
    st.builds(
        Step,
        st.integers(0, 12),
        st.sampled_from(["takes all", "fails", "fails", "fails for one subject", "breaks off"]),
        st.sampled_from(["that of the endpoint", "all", "all"]),
    ),
    min_size=1,
    max_size=12,
)


def answer_of(mood: str, message: ReceivedMessage) -> ReceiverAnswer:
    if mood == "fails" or (mood == "fails for one subject" and message.content["subject"] == "event 1"):
        return ReceiverAnswer(500)
    return ReceiverAnswer(0 if mood == "breaks off" else 204)


async def live_through(service: Service, program: OrganizerProgram, history: list[Step]) -> None:
    for step in history:
        await service.run_sql(STORE_MESSAGES, tenant=program.organizer.id, count=step.messages)
        if step.passes == "all":
            await program.pass_pauses()
        await service.run_sql("update webhook_endpoints set leased_until = now()")
        program.receiver.answer = lambda message, mood=step.mood: answer_of(mood, message)
        await program.deliver()


@pytest.fixture(scope="module")
def tell(template_url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[list[Step], bool], None]]:
    """Lets a history happen to a new endpoint. Then the endpoint takes everything, and a test is sent."""
    with scratch_database(template_url, "outages") as url, asyncio.Runner() as runner:
        stack = contextlib.AsyncExitStack()
        service = runner.run(stack.enter_async_context(running_events(unlimited(url, tmp_path_factory.mktemp("data")))))
        many = contextlib.asynccontextmanager(programs_of)
        programs: OrganizerPrograms = runner.run(stack.enter_async_context(many(service)))

        async def story(history: list[Step], is_ordered: bool) -> None:
            program = await programs.add(await service.organizer(), ordered=is_ordered)
            await live_through(service, program, history)
            before: dict[int, list[Any]] = {
                id: rest
                for id, *rest in await service.run_sql(
                    "select message_id, status, attempts, early_attempts from webhook_deliveries"
                )
            }
            program.receiver.answer = lambda _: ReceiverAnswer()
            program.receiver.received.clear()
            await program.organizer.post(f"{program.path}/ping", {})
            await program.deliver()
            await check(service, program, before, is_ordered)
            await program.organizer.delete(program.path)

        yield lambda history, is_ordered: runner.run(story(history, is_ordered))

        runner.run(stack.aclose())


async def check(service: Service, program: OrganizerProgram, before: dict[int, list[Any]], is_ordered: bool) -> None:
    rows = await service.run_sql(
        "select message_id, status, attempts, early_attempts, extract(epoch from due_at - now())::float8, subject_id"
        "  from webhook_deliveries order by message_id"
    )
    for id, status, attempts, early, pause, _ in rows:
        if status == "failed":
            assert attempts - early > len(RETRY_SECONDS), "it was given up before all its attempts"
        if status == "waiting" and not is_ordered:
            assert early == 5 or pause <= 1.2 * RETRY_SECONDS[0], f"{id} waits, although the endpoint answers"
    again = [int(message.id.removeprefix("msg_")) for message in program.receiver.received]
    early = [id for id in again if id in before and before[id][1] > 1]
    for place, id in enumerate(sorted(early)):
        assert abs(early.index(id) - place) < MAX_CONNECTIONS, "they came in another order"
    assert len(again) == len({*again}), "a message came twice"
    if is_ordered:
        numbers: dict[str, list[int]] = {}
        for message in program.receiver.received:
            numbers.setdefault(message.content["subject"], []).append(message.content["number"])
        assert all(later == earlier + 1 for every in numbers.values() for earlier, later in pairwise(every))


@settings(
    max_examples=500 if SOAK else 25,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
@given(history=steps, is_ordered=st.booleans())
def test_after_any_history_of_outages_what_failed_is_sent_when_the_endpoint_answers(
    tell: Callable[[list[Step], bool], None], history: list[Step], is_ordered: bool
) -> None:
    tell(history, is_ordered)
