"""What one person has paid for an event, and giving money back by hand."""

from collections.abc import Mapping, Sequence

from starlette.routing import BaseRoute

from holdfast.accounts.sessions import Session
from holdfast.events.console.event_form import minor
from holdfast.events.console.frame import Console, organizer
from holdfast.events.console.registrations import list_path
from holdfast.events.payments import listing, operations
from holdfast.events.payments.listing import Payer
from holdfast.events.payments.operations import BLOCKED, GivenBack, LookAtPayments, Made, RefundPayment
from holdfast.events.processor.currencies import digits, rules_of
from holdfast.kit.command import check
from holdfast.kit.handler import Reply, Request
from holdfast.kit.modes import read, single
from holdfast.kit.operation import ADDS, Operation
from holdfast.kit.pages import once
from holdfast.kit.pages.language import language_of
from holdfast.kit.pages.own import named, on_own
from holdfast.kit.pages.refusal import NOT_REFUSED, Refusal, tried
from holdfast.kit.problems import NOT_FOUND
from holdfast.kit.runner import Runner
from holdfast.kit.said import said

WHO = Operation("look_at_payer", None, read(listing.payer))
LOOK = Operation("look_at_payments", None, read(operations.look))
REFUND = Operation("refund_payment", None, single(operations.refund), ADDS)
OPERATIONS = (WHO, LOOK, REFUND)
"""They have no routes of the API and no tools of their own."""


class PaymentsPage:
    """Answers requests for the payments of one person for one event."""

    def __init__(self, console: Console, runner: Runner) -> None:
        self._console = console
        self._who = on_own(runner[WHO])
        self._look, self._refund = on_own(runner[LOOK]), on_own(runner[REFUND])

    def routes(self) -> list[BaseRoute]:
        path = f"{list_path('{event_id}')}/{{user_id}}/payments"
        return [self._console.route(path, "payments", self.answer, "POST")]

    async def answer(self, session: Session, request: Request) -> Reply:
        """Show the payments, or give money back."""
        asked = named(LookAtPayments, request)
        if request.method != "POST":
            return await self._page(session, request, asked)
        fields = await self._console.door.read(session, request)
        payments = await self._payments(session, asked)
        paid = next((each for each in payments if str(each.id) == fields.get("payment")), None)
        if paid is None:
            raise NOT_FOUND()
        if paid.blocked:
            return await self._page(
                session, request, asked, fields, Refusal({f"amount-{paid.id}": [BLOCKED[paid.blocked]]})
            )
        name, places = f"amount-{paid.id}", digits(paid.currency)
        amount = minor(fields.get(name, ""), places)
        if amount is None or amount % rules_of(paid.currency).unit:
            example = {0: "1250", 3: "12.500"}.get(places, "12.50")
            wrong = said("must be an amount such as %(example)s", example=example)
            if amount is not None:
                wrong = said("must end in 0, such as %(example)s", example=example)
            return await self._page(session, request, asked, fields, Refusal({name: [wrong]}))
        wanted = {"event_id": asked.event_id, "user_id": asked.user_id, "payment_id": paid.id, "amount": amount}
        done = await tried(
            lambda: once.run(self._refund, organizer(session), check(RefundPayment, wanted), fields, GivenBack)
        )
        if isinstance(done, Refusal):
            left = language_of(request).money(paid.refundable, paid.currency, places)
            wrong = said("must be more than 0 and at most what is left of the payment, %(left)s", left=left)
            return await self._page(session, request, asked, fields, Refusal({name: [wrong]}))
        return self._console.to(request, f"{list_path(asked.event_id)}/{asked.user_id}/payments")

    async def _payments(self, session: Session, asked: LookAtPayments) -> Sequence[Made]:
        return await self._look(organizer(session), asked)

    async def _page(
        self,
        session: Session,
        request: Request,
        asked: LookAtPayments,
        typed: Mapping[str, str] | None = None,
        refusal: Refusal = NOT_REFUSED,
    ) -> Reply:
        payer: Payer = await self._who(organizer(session), asked)
        return self._console.page(
            session,
            request,
            "payments.html",
            refusal.status,
            event=payer.event,
            payer=payer,
            payments=await self._payments(session, asked),
            back=f"{list_path(asked.event_id)}/{asked.user_id}",
            digits=digits,
            values=typed or {},
            errors=refusal.errors,
            once=once.new(),
        )
