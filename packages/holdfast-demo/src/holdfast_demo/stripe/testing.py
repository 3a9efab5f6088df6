"""The API of the processor for tests in another process, such as `POST /_test/pay {"session": "cs_test_…"}`.

A refusal has the error envelope of the API.
"""

from collections.abc import Callable
from typing import Any, TypeVar

import msgspec
from msgspec import Struct
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route

from holdfast_demo.shared.testing import AdvanceClock, EmptyCommand, change_webhooks, route
from holdfast_demo.stripe.disputes import DecidedStatus
from holdfast_demo.stripe.errors import Kind, StripeRefusal
from holdfast_demo.stripe.processor import Fault, StripeDouble
from holdfast_demo.stripe.processor_state import without_private

C = TypeVar("C", bound=Struct)


class PaySession(Struct, forbid_unknown_fields=True):
    """Pay a session with a card."""

    session: str
    card: str = "4242424242424242"


class FinishAccount(Struct, forbid_unknown_fields=True):
    """Finish an account."""

    account: str


class ChangeStripeWebhooks(Struct, forbid_unknown_fields=True):
    """Change how webhooks are sent; see `StripeWebhooks`. A missing field changes nothing."""

    hold: bool | None = None
    copies: int | None = None
    newest_first: bool | None = None
    delay: float | None = None
    dropped: set[str] | None = None
    first_pause: float | None = None


class SendAgain(Struct, forbid_unknown_fields=True):
    """Send an event once more."""

    event: str


class PlanStripeFault(Struct, forbid_unknown_fields=True):
    """Plan a fault; see `Fault`."""

    kind: Kind
    path: str = ""
    method: str = "POST"
    times: int = 1
    seconds: float = 30


class SettleRefund(Struct, forbid_unknown_fields=True):
    """Settle a refund; without a failure it has succeeded."""

    refund: str
    failure: str = ""


class OpenDispute(Struct, forbid_unknown_fields=True):
    """Dispute a charge."""

    charge: str


class DecideDispute(Struct, forbid_unknown_fields=True):
    """End a dispute."""

    dispute: str
    outcome: DecidedStatus


class SwitchCommand(Struct, forbid_unknown_fields=True):
    """Turn something on or off."""

    on: bool = True


class ListThings(Struct, forbid_unknown_fields=True):
    """Show all objects of a kind."""

    kind: str


def routes(processor: StripeDouble) -> list[BaseRoute]:
    """The routes of the API for tests."""

    def books(_: EmptyCommand) -> Any:
        processor.check()
        names = sorted({entry.account for entry in processor.books.entries()})
        return {
            "balances": {name: processor.balance(name) for name in names},
            "entries": [entry._asdict() for entry in processor.books.entries()],
        }

    def plan(fault: PlanStripeFault) -> None:
        processor.plan(Fault(**msgspec.structs.asdict(fault)))

    return [
        _route("advance", AdvanceClock, lambda command: processor.clock.advance(command.seconds)),
        _route("pay", PaySession, lambda command: processor.pay(command.session, command.card)),
        _route("finish", FinishAccount, lambda command: processor.finish(command.account)),
        _route("webhooks", ChangeStripeWebhooks, lambda command: change_webhooks(processor.webhooks, command)),
        _route("send-again", SendAgain, lambda command: processor.webhooks.send_again(command.event)),
        _route("plan", PlanStripeFault, plan),
        _route("heal", EmptyCommand, lambda _: processor.heal()),
        _route("settle-refund", SettleRefund, lambda command: processor.settle_refund(command.refund, command.failure)),
        _route("dispute", OpenDispute, lambda command: processor.dispute(command.charge)),
        _route("decide", DecideDispute, lambda command: processor.decide(command.dispute, command.outcome)),
        _route("leave-refunds-pending", SwitchCommand, lambda command: processor.leave_refunds_pending(command.on)),
        _route("refuse-accounts-v2", SwitchCommand, lambda command: processor.refuse_accounts_v2(command.on)),
        _route("things", ListThings, lambda command: processor.things(command.kind)),
        _route("books", EmptyCommand, books),
    ]


def _route(name: str, kind: type[C], action: Callable[[C], Any]) -> Route:
    def done(command: C) -> Response:
        try:
            return JSONResponse(without_private(action(command)))
        except StripeRefusal as refusal:
            return JSONResponse(refusal.body(), refusal.status)

    return route(name, kind, done)
