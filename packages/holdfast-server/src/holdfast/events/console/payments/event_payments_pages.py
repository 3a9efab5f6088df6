"""All payments for one event, including those of deleted registrations: a page, and a CSV file of it."""

from collections.abc import AsyncIterator, Sequence
from decimal import Decimal
from typing import Any

from holdfast.accounts.sessions import Session
from holdfast.events.console.events.event_page import EVENT_PATH
from holdfast.events.console.frame import Console, organizer
from holdfast.events.paths import id_of
from holdfast.events.payments import operations
from holdfast.events.payments.operations import EventPayments, ListedPayment, ListPayments
from holdfast.events.processor.currencies import digits
from holdfast.events.site import SITE
from holdfast.kit.contract.caller import Caller
from holdfast.kit.contract.csv_cells import BYTE_ORDER_MARK, as_csv
from holdfast.kit.http.answers import Download
from holdfast.kit.http.handler import Reply, Request, read_query
from holdfast.kit.http.index import Route
from holdfast.kit.operations.operation import Operation, read
from holdfast.kit.operations.runner import Runner, RunOperation
from holdfast.kit.pages.forms import hide_forbidden
from holdfast.kit.pages.language import Language, language_of

PAGE_SIZE = 100

LIST = Operation("list_payments", None, read(operations.list_for_event))
OPERATIONS = (LIST,)
"""An operation of the console alone: it has no route of the API and no tool."""


class EventPaymentsPage:
    """Answers requests for the payments for an event."""

    def __init__(self, console: Console, runner: Runner) -> None:
        self._console = console
        self._list = hide_forbidden(runner.run_of(LIST))

    def routes(self) -> list[Route]:
        return [self._console.route(f"{EVENT_PATH}/payments", "event_payments", self.show)]

    async def show(self, session: Session, request: Request) -> Reply:
        """Show the payments and refunds, newest payments first."""
        text = read_query(request.query).get("before", "")
        before = int(text) if text.isascii() and text.isdigit() and 0 < len(text) < 19 and int(text) else None
        command = ListPayments(id_of(request.fields["event_id"]), PAGE_SIZE + 1, before)
        result: EventPayments = await self._list(organizer(session), command)
        payments = result.payments[:PAGE_SIZE]
        return self._console.page(
            session,
            request,
            "payments/event_payments.html",
            event=result.event,
            totals=result.totals,
            payments=payments,
            last=payments[-1].id if len(result.payments) > PAGE_SIZE else None,
            digits=digits,
        )


class PaymentsFile:
    """Answers requests for the CSV file of payments."""

    def __init__(self, console: Console, runner: Runner) -> None:
        self._console = console
        self._list: RunOperation = hide_forbidden(runner.run_of(LIST))

    def routes(self) -> list[Route]:
        return [self._console.route(f"{EVENT_PATH}/payments.csv", "payments_csv", self.answer)]

    async def answer(self, session: Session, request: Request) -> Reply:
        """The file. Raises the same problems as the list, before the first byte is sent."""
        event_id = id_of(request.fields["event_id"])
        first: EventPayments = await self._list(organizer(session), ListPayments(event_id, PAGE_SIZE))
        return Download(
            200,
            media_type=b"text/csv; charset=utf-8",
            filename=f"payments-{event_id}.csv",
            parts=self._parts(organizer(session), event_id, first, language_of(request)),
        )

    async def _parts(
        self, caller: Caller, event_id: int, page: EventPayments, language: Language
    ) -> AsyncIterator[bytes]:
        """The parts of the file. It lacks payments that arrive during the download."""
        format = language.csv_format
        yield f"{BYTE_ORDER_MARK}{as_csv([_columns(language)], format)}".encode()
        while page.payments:
            yield as_csv((_row(payment, language) for payment in page.payments), format).encode()
            if len(page.payments) < PAGE_SIZE:
                return
            page = await self._list(caller, ListPayments(event_id, PAGE_SIZE, page.payments[-1].id))


def _columns(language: Language) -> Sequence[str]:
    _ = SITE.texts(language).gettext
    return (
        *(_("E-mail address"), _("Status"), _("Paid"), _("Refunded"), _("Fee of the platform"), _("You get")),
        *(_("Currency"), _("When (UTC)"), _("Id")),
    )


def _row(payment: ListedPayment, language: Language) -> Sequence[Any]:
    _ = SITE.texts(language).gettext
    statuses = {
        "opening": _("Being prepared"),
        "open": _("Not paid yet"),
        "paid": _("Paid"),
        "ended": _("Not paid in time"),
        "refused": _("Refused by the payment processor"),
    }
    is_paid = payment.status == "paid"
    amounts = (payment.amount, payment.refunded, payment.fee, payment.net) if is_paid else (0, 0, 0, 0)
    return (
        payment.email,
        statuses[payment.status],
        *(Decimal(amount).scaleb(-digits(payment.currency)) for amount in amounts),
        payment.currency,
        payment.moment.strftime("%Y-%m-%dT%H:%M:%SZ"),
        payment.user_id,
    )
