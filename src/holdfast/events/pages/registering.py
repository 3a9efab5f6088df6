"""The pages with the registration form alone: `/events/<event_id>/embed`, and what the form of an event page leads to.

A form that is taken leads to the page with its outcome. One that is not is shown again with what was typed, and with
one sentence that says why.
"""

from collections.abc import Mapping
from typing import Any

from starlette.routing import BaseRoute, Route

from holdfast.events.pages import form
from holdfast.events.pages.shown import Opening, Shown
from holdfast.events.paths import event_path, id_of
from holdfast.events.problems import EVENT_CANCELLED, EVENT_EXPIRED, EVENT_FULL, PAYMENT_UNAVAILABLE
from holdfast.events.registrations import details, links, sign_up
from holdfast.events.registrations.details import SendDetails
from holdfast.events.registrations.sign_up import SignedUp, SignUp
from holdfast.events.resources import Database
from holdfast.events.site import SITE
from holdfast.kit.caller import Caller
from holdfast.kit.handler import Access, Handler, Reply, Request, admit, headers_of
from holdfast.kit.limits import Limits
from holdfast.kit.lookups import Lookups
from holdfast.kit.modes import batched, single
from holdfast.kit.operation import Operation
from holdfast.kit.pages.forms import read_form, require_same_site
from holdfast.kit.pages.language import Language, language_of
from holdfast.kit.pages.rendered import Page, Pages, page
from holdfast.kit.pages.site import redirect
from holdfast.kit.problems import RATE_LIMITED, SERVICE_UNAVAILABLE, Problem
from holdfast.kit.runner import Runner

SIGN_UP = Operation("sign_up", None, batched(sign_up.sign_up), limit="forms")
SEND_DETAILS = Operation("send_details", None, single(details.send_again))
OPERATIONS = (SIGN_UP, SEND_DETAILS)
"""The operations of the pages. They have no routes and no tools of their own."""

_ABOUT_THE_EVENT = {EVENT_CANCELLED, EVENT_EXPIRED, EVENT_FULL, PAYMENT_UNAVAILABLE}
"""Refusals that the form says itself when it is shown again."""


def routes(database: Database, runner: Runner, limits: Limits, kept: Lookups[int, Shown]) -> list[BaseRoute]:
    """The routes of the form. `kept`: what links to events show."""

    def route(path: str, *, framed: bool) -> Route:
        form_page = FormPage(database, runner, limits, kept, framed=framed)
        methods = ("GET", "HEAD", "POST")
        handler = Handler(form_page.access, limits, form_page.answer, form_page.refuse, methods=methods)
        return Route(path, handler, methods=methods)

    return [
        route("/events/{event_id}/registrations", framed=False),
        route("/events/{event_id}/embed", framed=True),
        *SITE.assets("pages/embed.js"),
    ]


class Refused(Exception):
    """The form is shown again. The rest is as in `Form`."""

    def __init__(self, status: int, *, problem: Problem | None = None, **shown: Any) -> None:
        self.status = status
        self.problem = problem
        self.shown = shown


class FormPage:
    """The page with the form of an event, by itself or in a frame."""

    def __init__(
        self, database: Database, runner: Runner, limits: Limits, kept: Lookups[int, Shown], *, framed: bool
    ) -> None:
        self._settings, self._secret = database.resources.settings, database.resources.secret
        self._sign_up, self._send_details = runner[SIGN_UP], runner[SEND_DETAILS]
        self._shown = kept
        self._limits = limits
        self._framed = framed
        self._pages = Pages()
        self.access = Access("framed_form" if framed else "form")
        self._sending = Access(SIGN_UP.name, None, SIGN_UP.limit)

    async def answer(self, caller: Caller, request: Request) -> Reply:
        """Show the form, or take what was sent with it."""
        language = language_of(request)
        asked = id_of(request.scope["path_params"]["event_id"])
        shown = await self._shown.get(asked)
        event = shown.event
        if request.method != "POST":
            if self._framed:
                return await self._kept(event, language, request)
            return redirect(language.at(event_path(event.organizer_slug, event.id)))
        require_same_site(request, self._settings.base_url)
        fields = await read_form(request)
        try:
            done = await self._take(caller, shown, fields, language)
        except Refused as refused:
            if refused.problem and refused.problem.type in _ABOUT_THE_EVENT:
                self._shown.forget(str(asked))  # it has changed
                event = (await self._shown.get(asked)).event
            headers = headers_of(refused.problem) if refused.problem else ()
            return self._page(event, language, refused.status, headers, values=fields, **refused.shown)
        if not done.is_new:
            await self._send_details(caller, SendDetails(**done.link._asdict()))
            return SITE.page("pages/known.html", language=language, framed=self._framed, event=event)
        path = links.outcome_path(self._secret, done.link, framed=self._framed)
        return redirect(language.at(path), framed=self._framed)

    def refuse(self, problem: Problem, request: Request) -> Reply:
        return SITE.refuse(problem, request, framed=self._framed)

    async def _take(self, caller: Caller, shown: Shown, fields: Mapping[str, str], language: Language) -> SignedUp:
        """Store the registration that a form asks for. Raises `Refused`, and problems that have no form."""
        try:
            await admit(self._sending, self._limits, caller)
            wanted = self._checked(shown, fields, language)
            await self._limits.hit("forms of an event", f"event {shown.event.id}")
            return await self._sign_up(caller, wanted)
        except Problem as problem:
            if problem.type is RATE_LIMITED:
                raise Refused(429, problem=problem, notice="crowded", retry_after=problem.retry_after) from problem
            if problem.type is SERVICE_UNAVAILABLE:
                raise Refused(503, problem=problem, notice="busy") from problem
            if problem.type in _ABOUT_THE_EVENT:
                raise Refused(problem.status, problem=problem) from problem
            raise

    def _checked(self, shown: Shown, fields: Mapping[str, str], language: Language) -> SignUp:
        event = shown.event
        if not shown.is_asked:
            raise Refused(422, notice="moved")
        found = form.tokens(self._secret).check(form.purpose(event.id), fields.get(form.TOKEN, ""))
        if found != "good":
            raise Refused(422 if found == "old" else 403, notice="old")
        if fields.get(form.DECOY):
            raise Refused(422, notice="unseen")
        wanted = form.checked(event.id, fields, language)
        if isinstance(wanted, dict):
            raise Refused(422, errors=wanted)
        return wanted

    async def _kept(self, event: Opening, language: Language, request: Request) -> Reply:
        """The empty form. It is rendered when something has changed that it shows."""

        async def render() -> Page:
            reply = self._page(event, language)
            return page(reply.content.decode(), reply.headers)

        return (await self._pages.get((event, language, form.period()), render)).reply(request)

    def _page(self, event: Opening, language: Language, status: int = 200, headers: Any = (), **shown: Any) -> Reply:
        return SITE.page(
            "pages/register.html",
            status,
            language=language,
            framed=self._framed,
            headers=headers,
            event=event,
            zone=event.timezone or "UTC",
            address=language.at(event_path(event.organizer_slug, event.id)),
            form=form.form_of(event, self._settings, self._secret, language, framed=self._framed, **shown),
        )
