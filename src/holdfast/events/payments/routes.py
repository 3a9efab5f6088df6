"""The routes for the payment processor: its messages, and where it sends organizers back to."""

from starlette.routing import BaseRoute, Route

from holdfast.events.payments import messages, onboarding, returning
from holdfast.events.payments.messages import Receive
from holdfast.events.payments.onboarding import CreateOnboardingLink, Onboarding
from holdfast.events.resources import Database
from holdfast.events.site import SITE
from holdfast.kit.body import read_body
from holdfast.kit.caller import Caller, system
from holdfast.kit.handler import Access, Handler, Reply, Request, envelope
from holdfast.kit.limits import Limits
from holdfast.kit.modes import single, steps
from holdfast.kit.operation import Operation
from holdfast.kit.pages.language import language_of
from holdfast.kit.pages.site import redirect
from holdfast.kit.problems import NOT_FOUND, Problem
from holdfast.kit.runner import Runner

RECEIVE = Operation("receive_payment_message", None, single(messages.receive))
LINK_AGAIN = Operation("create_onboarding_link_again", None, steps(onboarding.create_link_again))
OPERATIONS = (RECEIVE, LINK_AGAIN)
"""They have no routes of the API and no tools of their own."""


def routes(database: Database, runner: Runner, limits: Limits) -> list[BaseRoute]:
    """The routes for the payment processor."""
    secret = database.resources.secret
    receive, link_again = runner[RECEIVE], runner[LINK_AGAIN]

    async def take(caller: Caller, request: Request) -> Reply:
        body = await read_body(request)
        signed = request.headers.get(b"stripe-signature", b"").decode("latin-1")
        await receive(caller, Receive(body=body, signature=signed))
        return Reply(204)

    async def again(caller: Caller, request: Request) -> Reply:
        organizer_id = returning.organizer_of(secret, request.scope["path_params"]["link"])
        if organizer_id is None:
            raise NOT_FOUND()
        made: Onboarding = await link_again(system(organizer_id), CreateOnboardingLink())
        return redirect(made.onboarding_url)

    async def done(caller: Caller, request: Request) -> Reply:
        return SITE.page("payments/done.html", language=language_of(request))

    return [
        Route(
            "/stripe/webhook",
            Handler(Access("payment_messages"), limits, take, envelope(Problem.body), methods=("POST",)),
            methods=["POST"],
        ),
        Route(
            f"{returning.AGAIN}/{{link}}", Handler(Access("payouts_again", None, "forms"), limits, again, SITE.refuse)
        ),
        Route(returning.DONE, Handler(Access("payouts_done"), limits, done, SITE.refuse)),
    ]
