"""The page that tells the visitor of a form how it went. It looks again by itself until that is known.

It shows neither the address nor a way to cancel: whoever typed the address may not own it.
"""

import random

from starlette.routing import BaseRoute, Route

from holdfast.events.pages import linked
from holdfast.events.paths import event_path
from holdfast.events.processor.currencies import digits
from holdfast.events.registrations.links import OUTCOME
from holdfast.events.registrations.own import LookAtOwn, Own
from holdfast.events.resources import Database
from holdfast.events.site import SITE
from holdfast.kit.caller import Caller
from holdfast.kit.handler import Access, Handler, Reply, Request, read_query
from holdfast.kit.limits import Limits
from holdfast.kit.pages.language import language_of
from holdfast.kit.problems import NOT_FOUND, Problem
from holdfast.kit.runner import Runner

SHOWN_SECONDS = 86_400
"""How long after the form was sent its visitor can see how it went."""


def routes(database: Database, runner: Runner, limits: Limits) -> list[BaseRoute]:
    """The routes of the page."""

    def route(path: str, *, framed: bool) -> Route:
        page = OutcomePage(database, runner, limits, framed=framed)
        return Route(path, Handler(page.access, limits, page.answer, page.refuse), methods=("GET", "HEAD"))

    return [
        route("/registrations/{link}/outcome", framed=False),
        route("/registrations/{link}/outcome/embed", framed=True),
        *SITE.assets("pages/outcome.js", "pages/countdown.js"),
    ]


class OutcomePage:
    """The page of an outcome, by itself or in a frame."""

    def __init__(self, database: Database, runner: Runner, limits: Limits, *, framed: bool) -> None:
        self._secret = database.resources.secret
        self._look = runner[linked.LOOK]
        self._limits = limits
        self._framed = framed
        self.access = Access("framed_outcome" if framed else "outcome")

    async def answer(self, caller: Caller, request: Request) -> Reply:
        """Show how the registration stands. Raises `not_found`."""
        language = language_of(request)
        # The payment processor leads people here who have paid; that it was paid is what it tells the service.
        paid = "paid" in read_query(request.query)
        link = await linked.opened(OUTCOME, request, self._secret, self._limits, caller)
        try:
            own: Own = await self._look(caller, LookAtOwn(**link._asdict()))
        except Problem as problem:
            if problem.type is not NOT_FOUND:
                raise
            return linked.gone(language, framed=self._framed)
        if own.age > SHOWN_SECONDS and own.status != "held":
            return linked.gone(language, framed=self._framed)
        return SITE.page(
            "pages/outcome.html",
            language=language,
            framed=self._framed,
            own=own,
            zone=own.timezone or "UTC",
            digits=digits(own.currency),
            refresh=seconds_to_look_again(own, paid=paid),
            paid=paid,
            form_path=language.at(f"/events/{own.event_id}/{'embed' if self._framed else 'registrations'}"),
            event_address=language.at(event_path(own.organizer_slug, own.event_id)),
        )

    def refuse(self, problem: Problem, request: Request) -> Reply:
        return SITE.refuse(problem, request, framed=self._framed)


def seconds_to_look_again(own: Own, *, paid: bool = False) -> int | None:
    """Seconds after which the page looks again: more for a longer wait, and varied so that not all look together.

    None if nothing changes any more that the page shows.

    paid    whether somebody has just paid
    """
    if own.status == "held":
        least, most = (4, 8) if own.payment_url and not paid else (1, 2)
    elif own.status == "pending":
        waits = ((5, 1, 1), (60, 2, 4))
        least, most = next(((least, most) for until, least, most in waits if own.age < until), (5, 10))
    else:
        return None
    return random.randint(least, most)  # noqa: S311 - no secret
