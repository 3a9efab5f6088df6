"""What tests can do with a processor in another process, such as `POST /_test/pay {"session": "cs_test_…"}`.

A refusal is answered as the API refuses.
"""

from collections.abc import Callable
from typing import Any, Literal, TypeVar

import msgspec
from msgspec import Struct
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route

from holdfast.events.payments.demo.errors import Refusal
from holdfast.events.payments.demo.faults import Kind
from holdfast.events.payments.demo.processor import Fault, Processor
from holdfast.events.payments.demo.world import public
from holdfast.kit.doubles.testing import Advance, Nothing, change, route

C = TypeVar("C", bound=Struct)


class Pay(Struct, forbid_unknown_fields=True):
    """Pay a session with a card."""

    session: str
    card: str = "4242424242424242"


class Finish(Struct, forbid_unknown_fields=True):
    """Finish an account."""

    account: str


class Hooks(Struct, forbid_unknown_fields=True):
    """Change how webhooks are sent; see `Webhooks`. What is not given stays as it is."""

    hold: bool | None = None
    copies: int | None = None
    newest_first: bool | None = None
    delay: float | None = None
    dropped: set[str] | None = None
    first_pause: float | None = None


class SendAgain(Struct, forbid_unknown_fields=True):
    """Send an event once more."""

    event: str


class Plan(Struct, forbid_unknown_fields=True):
    """Let something go wrong; see `Fault`."""

    kind: Kind
    path: str = ""
    method: str = "POST"
    times: int = 1
    seconds: float = 30


class Settle(Struct, forbid_unknown_fields=True):
    """Say what came of a refund; without a failure it has succeeded."""

    refund: str
    failure: str = ""


class Dispute(Struct, forbid_unknown_fields=True):
    """Dispute a charge."""

    charge: str


class Decide(Struct, forbid_unknown_fields=True):
    """End a dispute."""

    dispute: str
    outcome: Literal["won", "lost"]


class Switch(Struct, forbid_unknown_fields=True):
    """Turn something on or off."""

    on: bool = True


class List(Struct, forbid_unknown_fields=True):
    """Show all objects of a kind."""

    kind: str


def routes(processor: Processor) -> list[BaseRoute]:
    """The paths of the API of the tests."""

    def books(_: Nothing) -> Any:
        processor.check()
        names = sorted({each.account for each in processor.books.entries()})
        return {
            "balances": {name: processor.balance(name) for name in names},
            "entries": [each._asdict() for each in processor.books.entries()],
        }

    def plan(fault: Plan) -> None:
        processor.plan(Fault(**msgspec.structs.asdict(fault)))

    return [
        _route("advance", Advance, lambda asked: processor.clock.advance(asked.seconds)),
        _route("pay", Pay, lambda asked: processor.pay(asked.session, asked.card)),
        _route("finish", Finish, lambda asked: processor.finish(asked.account)),
        _route("webhooks", Hooks, lambda asked: change(processor.webhooks, asked)),
        _route("send-again", SendAgain, lambda asked: processor.webhooks.send_again(asked.event)),
        _route("plan", Plan, plan),
        _route("heal", Nothing, lambda _: processor.heal()),
        _route("settle-refund", Settle, lambda asked: processor.settle_refund(asked.refund, asked.failure)),
        _route("dispute", Dispute, lambda asked: processor.dispute(asked.charge)),
        _route("decide", Decide, lambda asked: processor.decide(asked.dispute, asked.outcome)),
        _route("leave-refunds-pending", Switch, lambda asked: processor.leave_refunds_pending(asked.on)),
        _route("refuse-accounts-v2", Switch, lambda asked: processor.refuse_accounts_v2(asked.on)),
        _route("things", List, lambda asked: processor.things(asked.kind)),
        _route("books", Nothing, books),
    ]


def _route(name: str, kind: type[C], act: Callable[[C], Any]) -> Route:
    def done(asked: C) -> Response:
        try:
            return JSONResponse(public(act(asked)))
        except Refusal as refusal:
            return JSONResponse(refusal.body(), refusal.status)

    return route(name, kind, done)
