"""The page of all payments for one event, including those of deleted registrations."""

from holdfast.accounts.sessions import Session
from holdfast.events.console.events.event import PATH
from holdfast.events.console.frame import Console, organizer
from holdfast.events.paths import id_of
from holdfast.events.payments import operations
from holdfast.events.payments.operations import EventPayments, ListPayments
from holdfast.events.processor.currencies import digits
from holdfast.kit.http.handler import Reply, Request, read_query
from holdfast.kit.http.index import Route
from holdfast.kit.pages.forms import hide_forbidden
from holdfast.kit.running.operation import Operation
from holdfast.kit.running.run_modes import read
from holdfast.kit.running.runner import Runner

PAGE_SIZE = 100

LIST = Operation("list_payments", None, read(operations.list_for_event))
OPERATIONS = (LIST,)
"""It has no route of the API and no tool of its own."""


class EventPaymentsPage:
    """Answers requests for the payments for an event."""

    def __init__(self, console: Console, runner: Runner) -> None:
        self._console = console
        self._list = hide_forbidden(runner[LIST])

    def routes(self) -> list[Route]:
        return [self._console.route(f"{PATH}/payments", "event_payments", self.show)]

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
