"""In any order of events, each holder of a seat has paid, and everyone else has the money back.

There is no model beside the service: the books of the payment processor are compared with the seats. They are compared
whenever everything that was on its way has arrived; that there are never more seats than capacity, after every step.
"""

import contextlib
import itertools
from functools import partial
from pathlib import Path
from typing import Any
from uuid import uuid4

from hypothesis import strategies as st
from hypothesis.stateful import initialize, invariant, rule

from holdfast.events.payments import checkout
from holdfast.events.payments.due import LeasedRow
from holdfast.events.payments.operations import RefundPayment, refund
from holdfast.events.processor.processor import ProcessorUnreachable
from holdfast.kit.contract.caller import api_key
from holdfast.kit.contract.problems import Problem
from holdfast.kit.operations.steps import Steps
from holdfast_demo.stripe.errors import Fault, StripeRefusal
from tests.helpers.event_visitor import Visitor
from tests.helpers.events_service import unlimited
from tests.helpers.payments import PaymentScene, open_payment_scene
from tests.models.machine import SOAK, Machine, MachineStage, explore, open_stage

OPERATIONS = 20_000 if SOAK else 400

PEOPLE = st.sampled_from("abcde")
PRICE = 1200

numbers = itertools.count(1)


WRONG = """
    with made as (
        select payments.*, exists (select from refunds where payment_id = payments.id
                                      and reason in ('no_seat', 'seat_lost')) as is_lost from payments),
    tried as (
        select event_id, user_id, arrival, count(*) filter (where state in ('opening', 'open')) as open,
               count(*) filter (where state = 'paid') as paid,
               count(*) filter (where state = 'paid' and not is_lost) as seated,
               count(*) filter (where state = 'paid' and refunded + kept < amount) as retained
          from made group by event_id, user_id, arrival)
    select user_id, status::text, amount_paid, open, paid, seated, tried.retained
      from registrations full join tried using (event_id, user_id, arrival)
     where event_id = %(id)s
       and (tried.retained > case when status = 'registered' then 1 else 0 end
            or (status is not distinct from 'held') <> (coalesce(open, 0) = 1)
            or status = 'registered' and amount_due is not null and amount_paid > 0 and coalesce(seated, 0) = 0
            or status = 'rejected' and reason = 'payment_expired' and paid > 0)
"""
"""People who have no seat although their money was kept, or who paid for two; whose seat is held and cannot be paid;
whose seat was never paid, or was refunded; who paid in time and lost the seat.
"""


class Market(Machine):
    """A paid event, five people, a payment processor, and everything that can go wrong between them."""

    def __init__(self, stage: MachineStage[PaymentScene]) -> None:
        super().__init__()
        self.stage = stage
        self.scene = stage.service
        self.number = next(numbers)

    @initialize(seats=st.integers(1, 3), places=st.integers(0, 3), days=st.sampled_from([0, 60]))
    def begin(self, seats: int, places: int, days: int) -> None:
        self.scene.processor.heal()
        self.ada = self.stage.run(self.scene.organizer())
        self._sql("update payout_accounts set refund_days = %(days)s", days=days)
        self.event = self.stage.run(
            self.scene.event(self.ada, capacity=seats, waitinglist_capacity=places, price=PRICE)
        )
        self.sessions: list[str] = []

    @rule(person=PEOPLE, far=st.sampled_from(["asks", "can pay", "pays", "is seated"]))
    def register(self, person: str, far: str) -> None:
        """How far that goes before other things happen."""

        async def send() -> None:
            visitor = Visitor(self.scene.service)
            if 'name="token"' in (await visitor.open(self.event)).text:
                await visitor.send(self.event, email=self._address(person))

        self.stage.run(send())
        if far != "asks":
            self.settle()
            self.work()
        if far in ("pays", "is seated"):
            self.pay(-1)
        if far == "is seated":
            self.deliver()

    @rule()
    def settle(self) -> None:
        self.stage.run(self.scene.service.settle())

    @rule()
    def work(self) -> None:
        """Also what was put off after a failure."""
        self._sql("update payments set due_at = now() where due_at is not null")
        self._sql("update refunds set due_at = now() where due_at is not null")
        self.stage.run(self.scene.work())

    @rule(which=st.integers(0, 9))
    def pay(self, which: int) -> None:
        """Any page that the processor has open, also one of which the service knows nothing yet, or any more."""

        async def pay() -> None:
            open = [session["id"] for session in self._of_this_event("checkout.session") if session["status"] == "open"]
            if open:
                try:
                    self.scene.processor.pay(open[which % len(open)])
                except StripeRefusal:
                    return

        self.stage.run(pay())

    @rule(which=st.integers(0, 9), is_paid=st.booleans())
    def two_processes_handle(self, which: int, is_paid: bool) -> None:
        """To one payment at the same time: one of them was so slow that the other believes it dead."""

        async def handle_row(id: int) -> None:
            with contextlib.suppress(ProcessorUnreachable):
                await checkout.handle_row(Steps(self.scene.service.database), LeasedRow(id, 1, uuid4()))

        if is_paid:
            self.pay(which)
        unpaid = "select id from payments where event_id = %(id)s and state in ('opening', 'open') order by id"
        if ids := self._sql(unpaid, id=self.event):
            [id] = ids[which % len(ids)]
            self.stage.run_together(handle_row(id), handle_row(id))

    @rule()
    def deliver(self) -> None:
        self.stage.run(self.scene.deliver())

    @rule()
    def send_the_last_message_again(self) -> None:
        async def again() -> None:
            events = self.scene.processor.things("event")
            if events:
                self.scene.processor.webhooks.send_again(events[-1]["id"])

        self.stage.run(again())

    @rule(which=st.integers(0, 9), is_paid=st.booleans(), is_seen=st.booleans())
    def time_is_up(self, which: int, is_paid: bool, is_seen: bool) -> None:
        """It may have been paid a moment ago, and may be seen to be over before anything else happens."""

        async def pay(session_id: str) -> None:
            with contextlib.suppress(StripeRefusal):
                self.scene.processor.pay(session_id)

        unpaid = (
            "select id, session_id from payments where event_id = %(id)s and state in ('opening', 'open') order by id"
        )
        if payments := self._sql(unpaid, id=self.event):
            id, session_id = payments[which % len(payments)]
            if is_paid and session_id:
                self.stage.run(pay(session_id))
            over = "update payments set ends_at = now() - interval '1 second', due_at = now() where id = %(id)s"
            self._sql(over, id=id)
            if is_seen:
                self.work()

    @rule(person=PEOPLE)
    def remove(self, person: str) -> None:
        self.stage.run(self.ada.delete(f"/api/registrations/{self.event}/{self._handle(person)}"))

    @rule(person=PEOPLE, status=st.sampled_from(["registered", "waitlisted"]))
    def move(self, person: str, status: str) -> None:
        path = f"/api/registrations/{self.event}/{self._handle(person)}"
        self.stage.run(self.ada.patch(path, {"registration": {"status": status}}))

    @rule(more=st.integers(-1, 2))
    def resize(self, more: int) -> None:
        """No seat is taken away from who has one, or for whom one is held."""
        [(registered_count,)] = self._sql("select registered_count from events where id = %(id)s", id=self.event)
        capacity = max(1, registered_count + more)
        answer = self.stage.run(self.ada.patch(f"/api/events/{self.event}", {"event": {"capacity": capacity}}))
        self.agree(
            f"a capacity of {capacity} with {registered_count} seats taken",
            answer.status_code,
            422 if capacity < registered_count else 200,
        )

    @rule(which=st.integers(0, 9), amount=st.sampled_from([1, 700, PRICE]), is_answered=st.booleans())
    def give_back(self, which: int, amount: int, is_answered: bool) -> None:
        caller = api_key(1, self.ada.id)
        paid = (
            "select public_id, payments.id from payments join users on users.id = user_id"
            " where event_id = %(id)s and state = 'paid' order by payments.id"
        )

        async def give(handle: str, id: int) -> None:
            command = RefundPayment(event_id=self.event, user_id=handle, payment_id=id, amount=amount)
            with contextlib.suppress(Problem):
                await self.scene.service.database.transact(partial(refund, caller=caller, command=command))
                if not is_answered:
                    self.scene.processor.plan(Fault("after", "/refunds"))

        if payments := self._sql(paid, id=self.event):
            self.stage.run(give(*payments[which % len(payments)]))

    @rule(kind=st.sampled_from(["before", "after", "down"]), path=st.sampled_from(["/sessions", "/refunds", "/expire"]))
    def break_down(self, kind: str, path: str) -> None:
        """The next call fails, before or after it was done: as if the service had been killed in between."""

        async def plan() -> None:
            self.scene.processor.plan(Fault(kind, path))  # pyright: ignore[reportArgumentType]

        self.stage.run(plan())

    @rule()
    def compare(self) -> None:
        """Let everything arrive, and compare the books."""
        self.scene.processor.heal()
        for _ in range(3):
            self.settle()
            self.work()
            self.deliver()
        self._in_order()

    def teardown(self) -> None:
        if hasattr(self, "event"):
            self.register("e", "can pay")
            self.stage.run(self.ada.delete(f"/api/events/{self.event}"))
            self.pay(-1)
            self.compare()
            left = "select id from payments where event_id = %(id)s and state = 'paid' and refunded + kept <> amount"
            self.agree("what is kept of a cancelled event", self._sql(left, id=self.event), [])

    @invariant()
    def never_more_seats_than_capacity(self) -> None:
        self.stage.compared += 1
        if hasattr(self, "event"):
            [(seats, counted, capacity)] = self._sql(
                "select (select count(*) from registrations"
                "         where event_id = events.id and status in ('registered', 'held')),"
                "       registered_count, capacity from events where id = %(id)s",
                id=self.event,
            )
            self.agree("the number of seats", (seats, counted <= capacity), (counted, True))

    def _in_order(self) -> None:
        self.agree("who has a seat and who has the money", self._sql(WRONG, id=self.event), [])
        self.agree("refunds", self._sql("select id, error from refunds where state <> 'made'"), [])
        self.scene.processor.check()
        known = "select session_id from payments where event_id = %(id)s and state = 'open'"
        self.agree(
            "the pages that can be paid",
            {session["id"] for session in self._of_this_event("checkout.session") if session["status"] == "open"},
            {id for (id,) in self._sql(known, id=self.event)},
        )
        charged = sum(charge["amount"] for charge in self._of_this_event("charge"))
        returned = sum(charge["amount_refunded"] for charge in self._of_this_event("charge"))
        [(paid, refunded)] = self._sql(
            "select coalesce(sum(amount), 0)::bigint, coalesce(sum(refunded), 0)::bigint from payments"
            " where event_id = %(id)s and state = 'paid'",
            id=self.event,
        )
        self.agree("the processor's books", (charged, returned), (paid, refunded))

    def _of_this_event(self, kind: str) -> list[dict[str, Any]]:
        things: list[dict[str, Any]] = self.scene.processor.things(kind)
        return [thing for thing in things if thing["metadata"].get("event") == str(self.event)]

    def _address(self, person: str) -> str:
        return f"{person}{self.number}@example.com"

    def _handle(self, person: str) -> str:
        rows = self._sql("select public_id from users where email = %(email)s", email=self._address(person))
        return str(rows[0][0]) if rows else NOBODY

    def _sql(self, statement: str, **parameters: object) -> list[tuple[Any, ...]]:
        return self.stage.run(self.scene.service.run_sql(statement, **parameters))


NOBODY = "nobodyno"


def test_a_payment_is_kept_for_a_seat_or_refunded_in_any_order_of_events(database_url: str, tmp_path: Path) -> None:
    with open_stage(open_payment_scene(unlimited(database_url, tmp_path))) as stage:
        explore(stage, lambda: Market(stage), OPERATIONS)
