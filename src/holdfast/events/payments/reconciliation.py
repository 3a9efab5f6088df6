"""Reconciliation: our payments beside those in the books of the processor, of some days.

Nothing is stored of what the books say. What differs is looked at again in the usual way, so that whoever paid has a
seat or the money; what cannot be mended so is reported, for people.
"""

import datetime as dt
from collections.abc import Sequence
from functools import partial
from typing import Literal, LiteralString

import msgspec
import structlog
from msgspec import Struct
from prometheus_client import Counter

from holdfast.events.payments import disputes
from holdfast.events.payments.messages import look_at
from holdfast.events.processor.processor import Taken
from holdfast.events.resources import Reader, Steps, Tx
from holdfast.kit.metrics import begin

DAYS = 2

PORTION = 100

DIFFERENCES = Counter("holdfast_payment_differences", "Payments in which the processor's books differ.", ["kind"])

log = structlog.get_logger()

Kind = Literal["unknown", "not_noted", "other_amount", "other_refunds", "dispute_not_noted", "not_taken"]

MEANINGS: dict[Kind, str] = {
    "unknown": "The processor has a payment that no registration of this service asked for. Look at it there.",
    "not_noted": "It was paid, and this service did not know. It is asked about now.",
    "other_amount": "The processor has another amount than this service. Look at it there.",
    "other_refunds": "The processor has given back another sum than this service. Look at it there.",
    "dispute_not_noted": "Its holder disputes it, and this service did not know. It is asked about now.",
    "not_taken": "This service has it as paid, and the processor has not. Look at it there.",
}
"""What each difference means, and what was or is to be done."""

for _kind in MEANINGS:
    begin(DIFFERENCES, _kind)


class Difference(Struct):
    """One payment in which the books differ. Amounts are in minor units; None: there is no payment."""

    kind: Kind
    intent_id: str
    payment_id: int | None
    ours: int | None
    theirs: int | None
    currency: str

    @property
    def meaning(self) -> str:
        return MEANINGS[self.kind]


class Report(Struct):
    """What was compared, and what differed. `compared`: how many payments the processor has."""

    since: dt.datetime
    compared: int
    differences: list[Difference]


class Ours(Struct):
    """A payment of ours. `made`: what the refunds sum up to that were made."""

    id: int
    session_id: str
    intent_id: str | None
    state: str
    amount: int
    currency: str
    made: int
    is_disputed: bool
    paid_at: dt.datetime | None


async def reconcile(steps: Steps, days: float = DAYS) -> Report:
    """Compare the payments of so many days, and have those looked at again of which we did not know."""
    processor = steps.resources.require_processor()
    since = await steps.read(lambda reader: reader.value("select now() - %(days)s * interval '1 day'", {"days": days}))
    found: list[Difference] = []
    seen: set[str] = set()
    portion: list[Taken] = []
    compared = 0

    async def compare() -> None:
        nonlocal compared
        differences = await _compare(steps, portion)
        compared += len(portion)
        seen.update(each.intent_id for each in portion)
        found.extend(differences)
        portion.clear()

    async for each in processor.taken_since(since):
        portion.append(each)
        if len(portion) == PORTION:
            await compare()
    if portion:
        await compare()
    # Sessions are listed by when they were opened. What was paid before the last minutes must be among them.
    ours = await steps.read(partial(_paid_since, since=since))
    found += [
        Difference("not_taken", each.intent_id or "", each.id, each.amount, None, each.currency)
        for each in ours
        if each.intent_id not in seen
    ]
    return Report(since, compared, found)


async def report(steps: Steps) -> int:
    """The daily reconciliation: what differs is logged, and counted. Returns how many payments differ."""
    if steps.resources.processor is None:
        return 0
    found = await reconcile(steps)
    for each in found.differences:
        DIFFERENCES.labels(each.kind).inc()
        log.error("the payment processor's books differ", **msgspec.structs.asdict(each), meaning=each.meaning)
    return len(found.differences)


async def _compare(steps: Steps, theirs: Sequence[Taken]) -> list[Difference]:
    ours = {
        each.session_id: each for each in await steps.read(partial(_find, ids=[each.session_id for each in theirs]))
    }
    differences: list[Difference] = []
    late: list[str] = []
    disputed: list[str] = []
    for taken in theirs:
        mine = ours.get(taken.session_id)
        currency = taken.currency.upper()
        if mine is None:
            differences.append(Difference("unknown", taken.intent_id, None, None, taken.amount, currency))
        elif mine.state != "paid":
            late.append(taken.session_id)
            differences.append(Difference("not_noted", taken.intent_id, mine.id, None, taken.amount, currency))
        elif (mine.amount, mine.currency) != (taken.amount, currency):
            differences.append(
                Difference("other_amount", taken.intent_id, mine.id, mine.amount, taken.amount, currency)
            )
        elif mine.made != taken.refunded:
            differences.append(
                Difference("other_refunds", taken.intent_id, mine.id, mine.made, taken.refunded, currency)
            )
        elif taken.disputed and not mine.is_disputed:
            disputed.append(taken.intent_id)
            differences.append(
                Difference("dispute_not_noted", taken.intent_id, mine.id, mine.amount, taken.amount, currency)
            )
    for intent_id in disputed:
        await _know_disputes(steps, intent_id)
    if late:
        await steps.transact(lambda tx: look_at(tx, late))
    return differences


async def _know_disputes(steps: Steps, intent_id: str) -> None:
    """Have the disputes about a payment looked at, of which no message came."""

    async def hear(tx: Tx) -> None:
        for each in found:
            await disputes.hear(tx, each.id, intent_id)

    found = await steps.resources.require_processor().disputes_of(intent_id)
    await steps.transact(hear)


OURS: LiteralString = """
    select payments.id, session_id, intent_id, payments.state::text, payments.amount, currency,
           coalesce((select sum(amount) from refunds
                      where payment_id = payments.id and state = 'made'), 0)::bigint as made,
           exists (select from disputes where disputes.intent_id = payments.intent_id) as is_disputed, paid_at
      from payments
"""


async def _find(reader: Reader, ids: Sequence[str]) -> list[Ours]:
    return await reader.rows(Ours, f"{OURS} where session_id = any(%(ids)s)", {"ids": [*ids]})


async def _paid_since(reader: Reader, since: dt.datetime) -> list[Ours]:
    return await reader.rows(
        Ours,
        f"""
        {OURS} where payments.state = 'paid' and payments.inserted_at > %(since)s
                 and paid_at < now() - interval '5 minutes'
        """,
        {"since": since},
    )
