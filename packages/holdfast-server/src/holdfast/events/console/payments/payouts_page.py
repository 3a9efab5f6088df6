"""The page of payouts: connect an account at the payment processor, and set the refund rule."""

from collections.abc import Mapping

from holdfast.accounts.sessions import Session
from holdfast.accounts.signed_in_pages import SIGN_IN, address_with_return
from holdfast.events.console.frame import HOME, Console, organizer
from holdfast.events.payments import payout_accounts
from holdfast.events.payments.payout_accounts import PAYOUTS, RETURN
from holdfast.events.payments.payout_model import (
    ConfirmPayoutAccount,
    GetPayouts,
    OpenOnboarding,
    Payouts,
    RefreshPayouts,
    SetRefundRule,
)
from holdfast.kit.contract.command import check
from holdfast.kit.contract.messages import message
from holdfast.kit.http.handler import Reply, Request, read_query
from holdfast.kit.http.index import Route
from holdfast.kit.operations.operation import Operation, read, single, steps
from holdfast.kit.operations.runner import Runner
from holdfast.kit.pages.forms import NOT_REFUSED, FormRefusal, try_form

READ_PAYOUTS = Operation("get_payouts", None, read(payout_accounts.get))
SET_RULE = Operation("set_refund_rule", None, single(payout_accounts.set_rule))
OPEN = Operation("open_onboarding", None, steps(payout_accounts.open_processor))
CONFIRM = Operation("confirm_payout_account", None, steps(payout_accounts.confirm))
REFRESH = Operation("refresh_payouts", None, steps(payout_accounts.refresh))
OPERATIONS = (READ_PAYOUTS, SET_RULE, OPEN, CONFIRM, REFRESH)
"""Operations of the console alone: they have no routes of the API and no tools."""

INSTRUCTIONS = {"refund_days": message("Enter a number of days, such as 7.")}
"""What people enter in the form of the refund rule, by field."""


class PayoutsPage:
    """Answers requests for the page of the organizer's payouts."""

    def __init__(self, console: Console, runner: Runner) -> None:
        self._console = console
        self._get_payouts, self._set_rule = runner.run_of(READ_PAYOUTS), runner.run_of(SET_RULE)
        self._open, self._confirm, self._refresh = runner.run_of(OPEN), runner.run_of(CONFIRM), runner.run_of(REFRESH)

    def routes(self) -> list[Route]:
        return [
            self._console.route(PAYOUTS, "payouts", self.show),
            self._console.route(f"{PAYOUTS}/connect", "connect_payouts", self.connect, "POST", limit="keys"),
            self._console.route(f"{PAYOUTS}/confirm", "confirm_payouts", self.confirm, "POST", limit="keys"),
            self._console.route(RETURN, "return_to_payouts", self.come_back, limit="keys"),
            self._console.route(f"{PAYOUTS}/rule", "refund_rule", self.rule, "POST"),
        ]

    async def show(self, session: Session, request: Request) -> Reply:
        """Show the status of the payouts."""
        return await self._page(session, request)

    async def connect(self, session: Session, request: Request) -> Reply:
        """Show the link to the onboarding page of the payment processor."""
        if request.method != "POST":
            return self._console.redirect(request, PAYOUTS)
        fields = await self._console.signed_in.read(session, request)
        command = OpenOnboarding(is_opened_by_mail=session.is_opened_by_mail, event_id=_event_id(fields))
        url: str = await self._open(organizer(session), command)
        return self._console.page(session, request, "payments/payouts_link.html", here=PAYOUTS, link=url)

    async def confirm(self, session: Session, request: Request) -> Reply:
        """Confirm that the connected payout account is the owner's."""
        if request.method != "POST":
            return self._console.redirect(request, PAYOUTS)
        fields = await self._console.signed_in.read(session, request)
        account_id = fields.get("account", "")
        command = ConfirmPayoutAccount(stripe_account_id=account_id, is_opened_by_mail=session.is_opened_by_mail)
        await self._confirm(organizer(session), command)
        return self._console.redirect(request, _address_after(_event_id(fields)))

    async def come_back(self, session: Session, request: Request) -> Reply:
        """Ask the processor for the status of the account, when the organizer returns from its page.

        An organizer who came from the page of an event gets back there.
        """
        await self._refresh(organizer(session), RefreshPayouts())
        return self._console.redirect(request, _address_after(_event_id(read_query(request.query))))

    async def rule(self, session: Session, request: Request) -> Reply:
        """Change the refund rule for cancellations."""
        if request.method != "POST":
            return self._console.redirect(request, PAYOUTS)
        fields = await self._console.signed_in.read(session, request)
        text = fields.get("refund_days", "")
        days = int(text) if text.isascii() and text.isdigit() and len(text) < 6 else text
        result = await try_form(
            lambda: self._set_rule(organizer(session), check(SetRefundRule, {"refund_days": days})),
            instructions=INSTRUCTIONS,
        )
        if isinstance(result, FormRefusal):
            return await self._page(session, request, fields, result)
        return self._console.redirect(request, f"{PAYOUTS}?done=saved")

    async def _page(
        self,
        session: Session,
        request: Request,
        typed: Mapping[str, str] | None = None,
        refusal: FormRefusal = NOT_REFUSED,
    ) -> Reply:
        payout_status: Payouts = await self._get_payouts(organizer(session), GetPayouts())
        query = read_query(request.query)
        return self._console.page(
            session,
            request,
            "payments/payouts.html",
            refusal.status,
            here=PAYOUTS,
            payouts=payout_status,
            is_owner=session.account.is_proved and session.is_opened_by_mail,
            sign_in=address_with_return(SIGN_IN, request, self._console.signed_in.site),
            is_meant=query.get("organizer") in (None, payout_status.slug),
            is_saved=query.get("done") == "saved",
            event_id=_event_id(query),
            values=typed or {"refund_days": str(payout_status.refund_days)},
            errors=refusal.errors,
        )


def _event_id(fields: Mapping[str, str]) -> int | None:
    """The event from whose page the organizer came, in the fields of a form or in a query."""
    text = fields.get("event", "")
    return int(text) if text.isascii() and text.isdigit() and len(text) < 19 else None


def _address_after(event_id: int | None) -> str:
    """The address to go to when the account is connected."""
    return f"{HOME}/events/{event_id}?done=connected" if event_id else PAYOUTS
