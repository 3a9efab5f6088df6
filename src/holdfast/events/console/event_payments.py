"""The page of all payments for one event, also of people whose registration is gone."""

from starlette.routing import BaseRoute

from holdfast.accounts.sessions import Session
from holdfast.events.console.event import PATH
from holdfast.events.console.frame import Console, organizer
from holdfast.events.paths import id_of
from holdfast.events.payments import listing
from holdfast.events.payments.listing import EventPayments, ListPayments
from holdfast.events.processor.currencies import digits
from holdfast.kit.handler import Reply, Request, read_query
from holdfast.kit.modes import read
from holdfast.kit.operation import Operation
from holdfast.kit.pages.own import on_own
from holdfast.kit.runner import Runner

SHOWN = 100

LIST = Operation("list_payments", None, read(listing.of_event))
OPERATIONS = (LIST,)
"""They have no routes of the API and no tools of their own."""


class EventPaymentsPage:
    """Answers requests for the payments for an event."""

    def __init__(self, console: Console, runner: Runner) -> None:
        self._console = console
        self._list = on_own(runner[LIST])

    def routes(self) -> list[BaseRoute]:
        return [self._console.route(f"{PATH}/payments", "event_payments", self.show)]

    async def show(self, session: Session, request: Request) -> Reply:
        """Show what was paid and given back, the newest payments first."""
        text = read_query(request.query).get("before", "")
        before = int(text) if text.isascii() and text.isdigit() and 0 < len(text) < 19 and int(text) else None
        asked = ListPayments(id_of(request.scope["path_params"]["event_id"]), SHOWN + 1, before)
        found: EventPayments = await self._list(organizer(session), asked)
        payments = found.payments[:SHOWN]
        return self._console.page(
            session,
            request,
            "event_payments.html",
            event=found.event,
            totals=found.totals,
            payments=payments,
            last=payments[-1].id if len(found.payments) > SHOWN else None,
            digits=digits,
        )
