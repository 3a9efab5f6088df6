"""The page of one event in the console: how it stands, its price as a picture, and what can be done with it."""

from starlette.routing import BaseRoute

from holdfast.accounts.sessions import Session
from holdfast.events.console.event_operations import LOOK, Seen
from holdfast.events.console.frame import HOME, Console, organizer
from holdfast.events.events.model import GetEvent
from holdfast.events.pages.price_line import draw
from holdfast.events.paths import event_path, id_of
from holdfast.events.pricing.model import ListPriceHistory, PriceChange
from holdfast.events.processor.currencies import digits, is_payable, rules_of
from holdfast.kit.handler import Reply, Request
from holdfast.kit.runner import Runner

PATH = f"{HOME}/events/{{event_id}}"

CHANGES = 50
"""The most changes of a price that are shown in words, the newest first."""


class EventPage:
    """Answers requests for the page of an event."""

    def __init__(self, console: Console, runner: Runner, *, takes_payments: bool) -> None:
        self._console = console
        self._takes_payments = takes_payments
        self._look = runner[LOOK]

    def routes(self) -> list[BaseRoute]:
        return [self._console.route(PATH, "event", self.show)]

    async def show(self, session: Session, request: Request) -> Reply:
        """Show how an event stands."""
        event_id = id_of(request.scope["path_params"]["event_id"])
        seen: Seen = await self._look(organizer(session), GetEvent(event_id=event_id))
        event = seen.event
        history = draw(seen.prices, min(seen.now, event.datetime)) if seen.prices else None
        changes: list[PriceChange] = []
        if history:
            asked = ListPriceHistory(event_id=event.id)
            changes = await self._console.run["get_price_history"](organizer(session), asked)
        return self._console.page(
            session,
            request,
            "event.html",
            event=event,
            pending=seen.pending,
            is_paid_out=event.payouts_ready and self._takes_payments,
            zone=event.timezone or "UTC",
            digits=digits(event.currency),
            rules=rules_of(event.currency),
            is_payable=is_payable(event.current_price or 0, event.currency),
            history=history,
            changes=changes[:CHANGES],
            photos=seen.photos,
            public=event_path(event.organizer_slug, event.id),
            images=seen.images_from,
        )
