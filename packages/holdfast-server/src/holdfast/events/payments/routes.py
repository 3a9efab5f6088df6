"""The routes for the payment processor: its messages, and the former addresses to which it sent organizers back."""

from starlette.routing import BaseRoute, Route

from holdfast.events.payments import onboarding, processor_webhooks
from holdfast.events.payments.processor_webhooks import ReceiveMessage
from holdfast.events.resources import Database
from holdfast.events.site import SITE
from holdfast.kit.contract.caller import Caller, partner
from holdfast.kit.contract.problems import Problem
from holdfast.kit.http.body import read_body
from holdfast.kit.http.handler import Access, Handler, Reply, Request, envelope
from holdfast.kit.pages.site import redirect
from holdfast.kit.running.operation import Operation
from holdfast.kit.running.rate_limits import Limits
from holdfast.kit.running.run_modes import single
from holdfast.kit.running.runner import Runner

RECEIVE = Operation("receive_payment_message", None, single(processor_webhooks.receive))
OPERATIONS = (RECEIVE,)
"""It has no API route and no tool."""

PROCESSOR = partner("payment processor")
"""The caller of messages whose signature was checked. Its work does not wait behind that of strangers."""


def routes(database: Database, runner: Runner, limits: Limits) -> list[BaseRoute]:
    """The routes for the payment processor."""
    receive = runner[RECEIVE]

    async def take(_: Caller, request: Request) -> Reply:
        body = await read_body(request)
        signed = request.headers.get(b"stripe-signature", b"")
        processor_webhooks.require_signature(database.resources.settings, signed, body)
        await receive(PROCESSOR, ReceiveMessage(body=body))
        return Reply(204)

    async def again(caller: Caller, request: Request) -> Reply:
        return redirect(onboarding.PAYOUTS)

    async def done(caller: Caller, request: Request) -> Reply:
        return redirect(onboarding.RETURN)

    return [
        Route(
            "/stripe/webhook",
            Handler(Access("payment_messages"), limits, take, envelope(Problem.body), methods=("POST",)),
            methods=["POST"],
        ),
        # Onboarding that began before an upgrade ends here: only a session of the console continues.
        Route("/payouts/again/{link}", Handler(Access("payouts_again"), limits, again, SITE.refuse)),
        Route("/payouts/done", Handler(Access("payouts_done"), limits, done, SITE.refuse)),
    ]
