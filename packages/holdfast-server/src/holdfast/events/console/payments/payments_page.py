"""The page of the payments of one person for one event, with refunds by hand."""

from collections.abc import Mapping, Sequence

from holdfast.accounts.sessions import Session
from holdfast.events.console.events.event_form import amount_text, minor_units
from holdfast.events.console.frame import Console, organizer
from holdfast.events.console.people.registrations_pages import list_path
from holdfast.events.payments import operations
from holdfast.events.payments.operations import (
    BLOCK_MESSAGES,
    ListPersonPayments,
    Payer,
    PaymentView,
    RefundPayment,
    RefundResult,
)
from holdfast.events.processor.currencies import digits, rules_of
from holdfast.kit.contract.command import check
from holdfast.kit.contract.messages import message
from holdfast.kit.contract.problems import NOT_FOUND
from holdfast.kit.http.handler import Reply, Request
from holdfast.kit.http.index import Route
from holdfast.kit.operations.operation import ADDS, Operation, read, single
from holdfast.kit.operations.runner import Runner
from holdfast.kit.pages import forms
from holdfast.kit.pages.forms import NOT_REFUSED, FormRefusal, command_in_path, hide_forbidden, try_form
from holdfast.kit.pages.language import language_of

READ_PAYER = Operation("get_payer", None, read(operations.payer))
READ_PAYMENTS = Operation("get_person_payments", None, read(operations.list_payments))
REFUND = Operation("refund_payment", None, single(operations.refund), ADDS)
OPERATIONS = (READ_PAYER, READ_PAYMENTS, REFUND)
"""Operations of the console alone: they have no routes of the API and no tools."""


class PaymentsPage:
    """Answers requests for the payments of one person for one event."""

    def __init__(self, console: Console, runner: Runner) -> None:
        self._console = console
        self._who = hide_forbidden(runner.run_of(READ_PAYER))
        self._get_payments, self._refund = (
            hide_forbidden(runner.run_of(READ_PAYMENTS)),
            hide_forbidden(runner.run_of(REFUND)),
        )

    def routes(self) -> list[Route]:
        path = f"{list_path('{event_id}')}/{{user_id}}/payments"
        return [self._console.route(path, "payments", self.answer, "POST")]

    async def answer(self, session: Session, request: Request) -> Reply:
        """Show the payments; with POST refund one."""
        command = command_in_path(ListPersonPayments, request)
        if request.method != "POST":
            return await self._page(session, request, command)
        fields = await self._console.signed_in.read(session, request)
        payments = await self._payments(session, command)
        payment = next((payment for payment in payments if str(payment.id) == fields.get("payment")), None)
        if payment is None:
            raise NOT_FOUND()
        if payment.blocked:
            return await self._page(
                session,
                request,
                command,
                fields,
                FormRefusal({f"amount-{payment.id}": [BLOCK_MESSAGES[payment.blocked]]}),
            )
        name, decimals = f"amount-{payment.id}", digits(payment.currency)
        amount = minor_units(fields.get(name, ""), decimals)
        if amount is None or amount % rules_of(payment.currency).unit:
            example = {0: "1250", 3: "12.500"}.get(decimals, "12.50")
            wrong = message("Enter an amount, such as %(example)s.", example=example)
            if amount is not None:
                wrong = message("Enter an amount that ends in 0, such as %(example)s.", example=example)
            return await self._page(session, request, command, fields, FormRefusal({name: [wrong]}))
        refund = {"event_id": command.event_id, "user_id": command.user_id, "payment_id": payment.id, "amount": amount}
        result = await try_form(
            lambda: forms.run_once(self._refund, organizer(session), check(RefundPayment, refund), fields, RefundResult)
        )
        if isinstance(result, FormRefusal):
            refundable = language_of(request).money(payment.refundable, payment.currency, decimals)
            wrong = message(
                "Enter an amount of more than 0 and at most what is left of the payment, %(left)s.", left=refundable
            )
            return await self._page(session, request, command, fields, FormRefusal({name: [wrong]}))
        return self._console.redirect(request, f"{list_path(command.event_id)}/{command.user_id}/payments")

    async def _payments(self, session: Session, command: ListPersonPayments) -> Sequence[PaymentView]:
        return await self._get_payments(organizer(session), command)

    async def _page(
        self,
        session: Session,
        request: Request,
        command: ListPersonPayments,
        typed: Mapping[str, str] | None = None,
        refusal: FormRefusal = NOT_REFUSED,
    ) -> Reply:
        payer: Payer = await self._who(organizer(session), command)
        return self._console.page(
            session,
            request,
            "payments/payments.html",
            refusal.status,
            event=payer.event,
            payer=payer,
            payments=await self._payments(session, command),
            back=f"{list_path(command.event_id)}/{command.user_id}",
            digits=digits,
            amount_text=amount_text,
            values=typed or {},
            errors=refusal.errors,
            once=forms.new_token(),
        )
