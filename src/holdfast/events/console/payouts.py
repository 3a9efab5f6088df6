"""The page of payouts: connecting an account at the payment processor, and the rule for cancellations."""

from collections.abc import Mapping

from starlette.routing import BaseRoute

from holdfast.accounts.sessions import Session
from holdfast.events.console.frame import Console, organizer
from holdfast.events.payments import payouts
from holdfast.events.payments.onboarding import CreateOnboardingLink, Onboarding
from holdfast.events.payments.payouts import LookAtPayouts, SetRefundRule
from holdfast.kit.command import check
from holdfast.kit.handler import Reply, Request, read_query
from holdfast.kit.modes import read, single
from holdfast.kit.operation import Operation
from holdfast.kit.pages.refusal import NOT_REFUSED, Refusal, tried
from holdfast.kit.runner import Runner

PAYOUTS = "/console/payouts"

LOOK = Operation("look_at_payouts", None, read(payouts.look))
SET_RULE = Operation("set_refund_rule", None, single(payouts.set_rule))
OPERATIONS = (LOOK, SET_RULE)
"""They have no routes of the API and no tools of their own."""


class PayoutsPage:
    """Answers requests for the payouts of the organizer."""

    def __init__(self, console: Console, runner: Runner) -> None:
        self._console = console
        self._look, self._set_rule = runner[LOOK], runner[SET_RULE]

    def routes(self) -> list[BaseRoute]:
        return [
            self._console.route(PAYOUTS, "payouts", self.show),
            self._console.route(f"{PAYOUTS}/connect", "connect_payouts", self.connect, "POST", limit="keys"),
            self._console.route(f"{PAYOUTS}/rule", "refund_rule", self.rule, "POST"),
        ]

    async def show(self, session: Session, request: Request) -> Reply:
        """Show how the payouts stand."""
        return await self._page(session, request)

    async def connect(self, session: Session, request: Request) -> Reply:
        """Lead to the page of the payment processor."""
        if request.method != "POST":
            return self._console.to(request, PAYOUTS)
        await self._console.door.read(session, request)
        link: Onboarding = await self._console.run["create_onboarding_link"](organizer(session), CreateOnboardingLink())
        return self._console.page(session, request, "payouts_link.html", here=PAYOUTS, link=link.onboarding_url)

    async def rule(self, session: Session, request: Request) -> Reply:
        """Change the rule for cancellations."""
        if request.method != "POST":
            return self._console.to(request, PAYOUTS)
        fields = await self._console.door.read(session, request)
        text = fields.get("refund_days", "")
        days = int(text) if text.isascii() and text.isdigit() and len(text) < 6 else text
        done = await tried(lambda: self._set_rule(organizer(session), check(SetRefundRule, {"refund_days": days})))
        if isinstance(done, Refusal):
            return await self._page(session, request, fields, done)
        return self._console.to(request, f"{PAYOUTS}?done=saved")

    async def _page(
        self,
        session: Session,
        request: Request,
        typed: Mapping[str, str] | None = None,
        refusal: Refusal = NOT_REFUSED,
    ) -> Reply:
        found: payouts.Payouts = await self._look(organizer(session), LookAtPayouts())
        return self._console.page(
            session,
            request,
            "payouts.html",
            refusal.status,
            here=PAYOUTS,
            payouts=found,
            is_saved=read_query(request.query).get("done") == "saved",
            values=typed or {"refund_days": str(found.refund_days)},
            errors=refusal.errors,
        )
