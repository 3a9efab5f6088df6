"""Sends webhooks: a process leases an endpoint, and sends the messages that are due for it.

A message is sent until the endpoint answers with a status of 2xx, or until the pauses of the specification are used up
(three days). It may be sent twice, with the same `webhook-id`: a process may end between the answer and the commit.

While an endpoint fails, one message at a time is tried, with growing pauses. When it answers again, messages that
failed are not left to wait for their next attempt, which may be a day later: each batch of which something is delivered
brings a few forward, the oldest first. Endpoints that failed last time, or were slow, use at most half of the slots.
After five days of failures an endpoint gets the status `failing`, and its messages wait for a person. An endpoint that
answers 410 is paused; one that answers with `Retry-After` gets nothing until then.
"""

import asyncio
import datetime as dt
import random
import time
from collections import deque
from collections.abc import Sequence
from email.utils import parsedate_to_datetime
from functools import partial
from typing import Any
from uuid import UUID, uuid4

import msgspec
from msgspec import Struct
from prometheus_client import Counter

from holdfast.kit.background.leases import LEASE_SECONDS
from holdfast.kit.background.row_work import LeasedRow, TableWork
from holdfast.kit.contract.bounds import Bound
from holdfast.kit.contract.problems import Problem
from holdfast.kit.outbound.refusals import FetchRefusal
from holdfast.kit.outbound.requests import PostAnswer, PostSession
from holdfast.kit.postgres.database import Database, Reader, Tx
from holdfast.kit.webhooks.delivery_leases import LEASE, SECONDS_UNTIL_DUE, TABLE, give_back
from holdfast.kit.webhooks.delivery_results import SendResult, store_results
from holdfast.kit.webhooks.failures import FailureReason, error_text
from holdfast.kit.webhooks.model import DueMessage, EndpointRow, SigningSecret, content_of
from holdfast.kit.webhooks.signing import signed_headers
from holdfast.kit.webhooks.sql import due_messages, find_active_endpoint

DELIVERIES_CHANNEL = "webhook_deliveries"

MAX_ENDPOINTS = 16
"""Endpoints to which one process sends at the same time."""

MAX_UNRELIABLE_ENDPOINTS = 8
"""Endpoints that failed last time or were slow, among those that one process sends to at the same time."""

SLOW_SECONDS = 2.0
"""An endpoint is slow if a message took longer in its last turn."""

MAX_ENDPOINTS_OF_TENANT = 4
"""Endpoints of one tenant to which all processes send at the same time."""

MAX_CONNECTIONS = 8
"""Connections to one endpoint."""

MESSAGES_PER_READ = 64

TURN_SECONDS = 5.0
"""Seconds after which an endpoint with more messages gives up its slot."""

ANSWER_SECONDS = 15
"""Seconds that an endpoint may take to answer."""

RETRY_SECONDS = (5.0, 300.0, 1_800.0, 7_200.0, 18_000.0, 36_000.0, 50_400.0, 72_000.0, 86_400.0)
"""Seconds before each further attempt of a message, as the specification recommends."""

MAX_RETRY_AFTER_SECONDS = 86_400.0

OVERLOAD_STATUSES = {429, 502, 503, 504}
"""Statuses after which an endpoint gets nothing for a moment, also if it took other messages (of the specification)."""

MAX_BROUGHT_FORWARD = MAX_CONNECTIONS // 2
"""Messages that one batch brings forward. Those that always fail occupy half of the connections at most."""

FIRST_ENDPOINT_PAUSE_SECONDS = 1.0
MAX_ENDPOINT_PAUSE_SECONDS = 300.0
"""Seconds for which an endpoint gets nothing: after its first failure, and at most. Each failure doubles them."""

SENDING = Bound(
    name="Endpoints to which one process sends webhooks at the same time",
    service="both",
    total=f"{MAX_ENDPOINTS}, of which {MAX_UNRELIABLE_ENDPOINTS} may be endpoints that fail or take longer than "
    f"{SLOW_SECONDS:g} seconds",
    tenant=f"{MAX_ENDPOINTS_OF_TENANT} in all processes, in turns of {TURN_SECONDS:g} seconds",
    address="none: only tenants have endpoints",
    reserved="half, for endpoints that answer quickly",
    stranger=f"Others wait a turn of {TURN_SECONDS:g} seconds. An endpoint that does not answer, or slowly, holds a "
    f"slot for at most {TURN_SECONDS + ANSWER_SECONDS:g} seconds, and then only one of the other half.",
)

ATTEMPTS = Counter("holdfast_webhook_attempts", "Messages of webhooks that were sent, by result.", ["result"])


class LeasedEndpoint(Struct):
    """An endpoint that this process has leased. `is_unreliable`: it failed last time, or was slow."""

    id: int
    attempts: int
    lease_id: UUID
    is_unreliable: bool


class TurnResult(Struct):
    """The result of the turn of an endpoint.

    messages    how many messages were sent, also those that failed
    pause       seconds for which it gets no more
    is_slow     whether a message took long
    """

    messages: int = 0
    pause: float = 0.0
    is_slow: bool = False


class DeliveryWork(TableWork):
    """Sends the messages that are due, in turns of endpoints.

    turn_seconds    seconds after which an endpoint with more messages gives up its slot
    slow_seconds    seconds from which on a message has taken long
    """

    name = "webhook_deliveries"
    channels = (DELIVERIES_CHANNEL,)
    max_concurrent = MAX_ENDPOINTS

    def __init__(
        self, database: Database[Any], turn_seconds: float = TURN_SECONDS, slow_seconds: float = SLOW_SECONDS
    ) -> None:
        super().__init__(database, TABLE)
        self._turn_seconds = turn_seconds
        self._slow_seconds = slow_seconds
        self._unreliable: set[int] = set()
        """The endpoints that this process has leased, and that failed last time or were slow."""

    async def lease(self, limit: int, excluded: Sequence[int], *, scan_all: bool) -> Sequence[LeasedRow]:
        endpoints = await self.database.autocommit(
            lambda writer: writer.rows(
                LeasedEndpoint,
                LEASE,
                {
                    "limit": limit,
                    "excluded": [*excluded],
                    "unreliable": MAX_UNRELIABLE_ENDPOINTS - len(self._unreliable),
                    "of_tenant": MAX_ENDPOINTS_OF_TENANT,
                    "lease_id": uuid4(),
                    "seconds": LEASE_SECONDS,
                },
            )
        )
        self._unreliable.update(endpoint.id for endpoint in endpoints if endpoint.is_unreliable)
        return [LeasedRow(endpoint.id, endpoint.attempts, endpoint.lease_id) for endpoint in endpoints]

    async def seconds_until_due(self, reader: Reader[Any], excluded: Sequence[int]) -> float | None:
        return await reader.value(SECONDS_UNTIL_DUE, {"excluded": [*excluded]})

    async def handle(self, row: LeasedRow) -> int:
        """Send what is due for an endpoint, and give it back."""
        try:
            turn = await self._take_turn(row)
        finally:
            self._unreliable.discard(row.key)
        await self.database.transact(partial(give_back, row=row, pause=turn.pause, is_slow=turn.is_slow))
        return turn.messages

    async def _take_turn(self, row: LeasedRow) -> TurnResult:
        """Send one batch of due messages after another, until nothing is due, or the turn ends."""
        endpoint = await self.database.read(partial(find_active_endpoint, id=row.key))
        if endpoint is None or not (messages := await self._due_messages(row.key, endpoint.failing_since is not None)):
            return TurnResult()
        owner = ("webhooks", f"tenant {endpoint.tenant_id}")
        turn, ends_at = TurnResult(), time.monotonic() + self._turn_seconds
        try:
            async with self.database.resources.webhooks.session(
                endpoint.url, owner=owner, connections=MAX_CONNECTIONS
            ) as session:
                while messages:
                    results = await self._send_batch(session, endpoint, messages, ends_at)
                    turn.pause = await self._store_results(row, endpoint, results)
                    turn.messages += len(results)
                    turn.is_slow |= any(result.milliseconds >= self._slow_seconds * 1_000 for result in results)
                    if turn.pause or time.monotonic() >= ends_at:
                        return turn
                    messages = await self._due_messages(row.key, is_failing=False)
        except FetchRefusal as refusal:  # the address cannot be used
            results = [_result_without_answer(messages[0], endpoint, refusal, started_at=time.monotonic())]
            turn.messages, turn.pause = 1, await self._store_results(row, endpoint, results)
        except Problem as problem:  # too many messages of this tenant wait for their turn
            turn.pause = float(problem.retry_after or FIRST_ENDPOINT_PAUSE_SECONDS)
        return turn

    async def _due_messages(self, endpoint_id: int, is_failing: bool) -> list[DueMessage]:
        limit = 1 if is_failing else MESSAGES_PER_READ
        return await self.database.read(partial(due_messages, endpoint_id=endpoint_id, limit=limit))

    async def _send_batch(
        self, session: PostSession, endpoint: EndpointRow, messages: Sequence[DueMessage], ends_at: float
    ) -> Sequence[SendResult]:
        """Send messages, at most `MAX_CONNECTIONS` at the same time. After a failure, and after the end of the turn, no
        further one is begun.
        """
        secrets = self._secrets(endpoint)
        waiting_messages = deque(messages)
        results: list[SendResult] = []

        async def send_one_after_another() -> None:
            while waiting_messages and all(result.error is None for result in results):
                if results and time.monotonic() >= ends_at:
                    return
                results.append(await _send_message(session, endpoint, waiting_messages.popleft(), secrets))

        async with asyncio.TaskGroup() as group:
            for _ in range(min(MAX_CONNECTIONS, len(messages))):
                group.create_task(send_one_after_another(), name="webhook")
        return results

    def _secrets(self, endpoint: EndpointRow) -> Sequence[str]:
        sealed = self.database.resources.secret.unseal(endpoint.sealed)
        now = dt.datetime.now(dt.UTC)
        secrets = msgspec.json.decode(sealed, type=list[SigningSecret])
        return [secret.value for secret in secrets if secret.until is None or secret.until > now]

    async def _store_results(self, row: LeasedRow, endpoint: EndpointRow, results: Sequence[SendResult]) -> float:
        """Store the results of messages. Returns seconds for which the endpoint gets no more."""
        for result in results:
            ATTEMPTS.labels("failed" if result.error else "delivered").inc()

        async def store(tx: Tx[Any]) -> int:
            failures = await store_results(
                tx,
                endpoint.id,
                results,
                max_brought_forward=MAX_BROUGHT_FORWARD,
                max_scanned=MESSAGES_PER_READ + MAX_BROUGHT_FORWARD,
            )
            await self.table.fence(row).check(tx)
            return failures

        failures = await self.database.transact(store)
        pauses = [result.endpoint_pause for result in results]
        if failures:
            pauses.append(min(FIRST_ENDPOINT_PAUSE_SECONDS * 2 ** min(failures - 1, 20), MAX_ENDPOINT_PAUSE_SECONDS))
        return max(pauses)


def body_of(message: DueMessage) -> bytes:
    """The body of a message."""
    content = content_of(message.type, message.created_at, message.subject, message.number, message.data)
    return msgspec.json.encode(content)


async def _send_message(
    session: PostSession, endpoint: EndpointRow, message: DueMessage, secrets: Sequence[str]
) -> SendResult:
    """Send one message."""
    body, started_at = body_of(message), time.monotonic()
    headers = {
        **signed_headers(secrets, f"msg_{message.id}", int(time.time()), body),
        "Content-Type": "application/json",
    }
    try:
        answer = await session.post(body, headers)
    except FetchRefusal as refusal:
        return _result_without_answer(message, endpoint, refusal, started_at)
    if 200 <= answer.status < 300:
        return SendResult(message_id=message.id, status=answer.status, milliseconds=_milliseconds(started_at))
    return _result_of_status(message, endpoint, answer, started_at)


def _result_without_answer(
    message: DueMessage, endpoint: EndpointRow, refusal: FetchRefusal, started_at: float
) -> SendResult:
    """The result of an attempt without an answer."""
    reason: FailureReason = "broken" if refusal.reason == "content" else refusal.reason
    error = error_text(reason, f"The address {refusal}.")
    return SendResult(
        message_id=message.id,
        status=None,
        milliseconds=_milliseconds(started_at),
        reason=reason,
        error=error,
        retry_pause=_retry_pause(message, endpoint),
    )


def _result_of_status(message: DueMessage, endpoint: EndpointRow, answer: PostAnswer, started_at: float) -> SendResult:
    """The result of an attempt with another status than 200 to 299."""
    error = error_text("status", f"The answer has the status {answer.status}.")
    retry_after = _retry_after(answer.headers.get("retry-after", ""))
    endpoint_pause = max(retry_after, FIRST_ENDPOINT_PAUSE_SECONDS if answer.status in OVERLOAD_STATUSES else 0.0)
    retry_pause = _retry_pause(message, endpoint)
    if retry_pause is not None:
        retry_pause = max(retry_pause, retry_after)
    return SendResult(
        message_id=message.id,
        status=answer.status,
        milliseconds=_milliseconds(started_at),
        reason="status",
        error=error,
        retry_pause=retry_pause,
        endpoint_pause=endpoint_pause,
    )


def _retry_pause(message: DueMessage, endpoint: EndpointRow) -> float | None:
    """Seconds until the next attempt of a message that failed; None: there is none.

    Messages in strict order are tried until the endpoint ends. An attempt that was brought forward does not count.
    """
    step = message.attempts - message.early_attempts
    if step >= len(RETRY_SECONDS) and not endpoint.is_ordered:
        return None
    return RETRY_SECONDS[min(step, len(RETRY_SECONDS) - 1)] * random.uniform(1.0, 1.2)  # noqa: S311


def _retry_after(text: str) -> float:
    """Seconds that the header Retry-After asks for, as a number or a date; 0 if it is neither."""
    try:
        seconds = (
            float(text) if text.isascii() and text.isdigit() else parsedate_to_datetime(text).timestamp() - time.time()
        )
    except (ValueError, TypeError, OverflowError):
        return 0.0
    return min(max(seconds, 0.0), MAX_RETRY_AFTER_SECONDS)


def _milliseconds(started_at: float) -> int:
    return round((time.monotonic() - started_at) * 1_000)
