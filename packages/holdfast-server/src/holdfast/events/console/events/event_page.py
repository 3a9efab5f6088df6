"""The console page of one event: its status, what happened last, the history of its price as a picture, and links."""

from collections.abc import Sequence
from functools import partial

from holdfast.accounts.sessions import Session
from holdfast.events.console.events.share_pages import COPY_SCRIPT, share_links_of
from holdfast.events.console.frame import HOME, Console, organizer
from holdfast.events.events.model import GetEvent
from holdfast.events.events.overview import COUNT_FIGURES, READ_EVENT, EventDetails, EventFigures
from holdfast.events.pages.cover import cover_svg
from holdfast.events.pages.event.page import preview_path, price_chart
from holdfast.events.paths import event_path, id_of
from holdfast.events.pricing.model import ListPriceHistory, PriceChange
from holdfast.events.processor.currencies import digits, is_payable, rules_of
from holdfast.events.registrations.latest import READ_LATEST, LatestEntry, ReadLatest
from holdfast.events.settings import Settings
from holdfast.events.texts.rendered_text import one_line
from holdfast.kit.http.handler import Reply, Request, read_query
from holdfast.kit.http.index import Route
from holdfast.kit.operations.runner import Runner
from holdfast.kit.pages.chart import Chart, draw_bars
from holdfast.kit.pages.language import Language
from holdfast.kit.security.service_secret import Secret

EVENT_PATH = f"{HOME}/events/{{event_id}}"

MAX_CHANGES = 50
"""The most price changes that are listed, newest first."""


class ConsoleEventPage:
    """Answers requests for the console page of an event."""

    def __init__(self, console: Console, runner: Runner, settings: Settings, secret: Secret) -> None:
        self._console = console
        self._settings, self._secret = settings, secret
        self._get_event, self._count = runner.run_of(READ_EVENT), runner.run_of(COUNT_FIGURES)
        self._get_latest = runner.run_of(READ_LATEST)

    def routes(self) -> list[Route]:
        return [self._console.route(EVENT_PATH, "event", self.show)]

    async def show(
        self, session: Session, request: Request, status: int = 200, *, problem: Sequence[str] = ()
    ) -> Reply:
        """Show the status of an event. `problem`: the messages of a change that was refused."""
        event_id = id_of(request.fields["event_id"])
        details: EventDetails = await self._get_event(organizer(session), GetEvent(event_id=event_id))
        event, language = details.event, self._console.signed_in.gate.page_context(request).language
        figures: EventFigures | None = await self._count(organizer(session), GetEvent(event_id=event_id))
        latest: Sequence[LatestEntry] = await self._get_latest(organizer(session), ReadLatest(event_id=event_id))
        history = price_chart(details.prices, min(details.now, event.datetime))
        changes: list[PriceChange] = []
        if history:
            command = ListPriceHistory(event_id=event.id)
            changes = await self._console.run["get_price_history"](organizer(session), command)
        return self._console.page(
            session,
            request,
            "events/event.html",
            status,
            event=event,
            problem=problem,
            pending=details.pending,
            is_paid_out=event.payouts_ready and self._settings.takes_payments,
            is_running=event.is_running(details.now),
            zone=event.timezone or "UTC",
            digits=digits(event.currency),
            digits_of=digits,
            latest=latest,
            rules=rules_of(event.currency),
            is_payable=is_payable(event.current_price or 0, event.currency),
            history=history,
            price_text=partial(language.money, currency=event.currency, digits=digits(event.currency)),
            by_day=_arrivals_chart(figures) if figures else None,
            entered=figures.entered if figures else 0,
            revenue=_revenue(figures, language) if figures else None,
            changes=changes[:MAX_CHANGES],
            photos=details.photos,
            cover=cover_svg(one_line(event.title)),
            public=event_path(event.organizer_slug, event.id),
            preview=(preview := preview_path(self._secret, event.id)),
            preview_url=self._settings.base_url + preview,
            images=details.images_from,
            order=details.order,
            done=read_query(request.query).get("done"),
            queue=details.queue,
            share=share_links_of(event, self._settings),
            scripts=[COPY_SCRIPT],
        )


def _arrivals_chart(figures: EventFigures) -> Chart | None:
    """How many people registered each day; on the first day, each hour. None while no person is registered."""
    return draw_bars(figures.by_hour, is_brief=True) if figures.by_hour else draw_bars(figures.by_day)


def _revenue(figures: EventFigures, language: Language) -> str:
    """What was paid by card, in each currency; empty if nothing was."""
    return " + ".join(language.money(amount, unit, digits(unit)) for unit, amount in figures.revenue)
