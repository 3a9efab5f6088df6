"""The pages of one's own registration, behind the link in its mails: look at it, cancel it, stop its mails.

Looking changes nothing: programs that check mails follow the links in them. Whoever has the link needs no account.
"""

from collections.abc import Awaitable, Callable
from functools import lru_cache
from typing import Any, Literal

from markupsafe import Markup
from starlette.routing import BaseRoute, Route

from holdfast.events.pages import linked
from holdfast.events.paths import event_path, organizer_path
from holdfast.events.processor.currencies import digits
from holdfast.events.registrations import links, own
from holdfast.events.registrations.code import code, spoken
from holdfast.events.registrations.links import OWN, Link
from holdfast.events.registrations.own import Cancelled, CancelOwn, LookAtOwn, Own, StopMails
from holdfast.events.resources import Database
from holdfast.events.site import SITE
from holdfast.kit.caller import Caller
from holdfast.kit.handler import Access, Handler, Reply, Request
from holdfast.kit.limits import Limits
from holdfast.kit.modes import single
from holdfast.kit.operation import Operation
from holdfast.kit.pages.forms import FormTokens, read_form, require_same_site
from holdfast.kit.pages.language import Language, language_of
from holdfast.kit.pages.site import redirect
from holdfast.kit.problems import NOT_FOUND, Problem
from holdfast.kit.runner import Runner

CANCEL = Operation("cancel_own", None, single(own.cancel))
STOP_MAILS = Operation("stop_mails", None, single(own.stop_mails))
OPERATIONS = (CANCEL, STOP_MAILS)
"""The operations of the pages. They have no routes and no tools of their own."""

Notice = Literal["old", "late"]


def routes(database: Database, runner: Runner, limits: Limits) -> list[BaseRoute]:
    """The routes of one's own registration."""
    pages = OwnPages(database, runner, limits)

    def page(path: str, name: str, answer: Callable[[Caller, Request], Awaitable[Reply]], *methods: str) -> Route:
        handler = Handler(Access(name), limits, answer, pages.refuse, methods=("GET", "HEAD", *methods))
        return Route(path, handler, methods=("GET", "HEAD", *methods))

    return [
        page("/registrations/{link}", "own_registration", pages.look),
        page("/registrations/{link}/cancel", "own_cancellation", pages.cancel, "POST"),
        page("/registrations/{link}/unsubscribe", "unsubscribing", pages.unsubscribe, "POST"),
    ]


class OwnPages:
    """Answers requests of people about their own registrations."""

    def __init__(self, database: Database, runner: Runner, limits: Limits) -> None:
        self._settings, self._secret = database.resources.settings, database.resources.secret
        self._look, self._cancel, self._stop = runner[linked.LOOK], runner[CANCEL], runner[STOP_MAILS]
        self._limits = limits
        self._tokens = FormTokens(self._secret.signer("own registration forms"))

    async def look(self, caller: Caller, request: Request) -> Reply:
        """Show a registration."""
        link, language = await self._opened(caller, request), language_of(request)
        return await self._shown(caller, link, language)

    async def cancel(self, caller: Caller, request: Request) -> Reply:
        """Cancel a registration, if its own page asks for it."""
        link, language = await self._opened(caller, request), language_of(request)
        if request.method != "POST":
            return redirect(language.at(self._path(link)))
        require_same_site(request, self._settings.base_url)
        fields = await read_form(request)
        if self._tokens.check(self._path(link), fields.get("token", "")) != "good":
            return await self._shown(caller, link, language, 422, notice="old")
        try:
            cancelled: Cancelled = await self._cancel(caller, CancelOwn(**link._asdict()))
        except Problem as problem:
            return _gone(problem, language)
        if not cancelled.done:
            return await self._shown(caller, link, language, 422, notice="late")
        return SITE.page("pages/cancelled.html", language=language, **self._values(cancelled.own, language))

    async def unsubscribe(self, caller: Caller, request: Request) -> Reply:
        """Ask whether to stop the mails about a registration, and stop them.

        A mail program may do so by itself (RFC 8058), with a POST that has no token: the link is proof enough.
        """
        link, language = await self._opened(caller, request), language_of(request)
        stopped = request.method == "POST"
        if stopped:
            await self._stop(caller, StopMails(**link._asdict()))
        try:
            found: Own = await self._look(caller, LookAtOwn(**link._asdict()))
        except Problem as problem:
            return _gone(problem, language, 200 if stopped else 410)
        values = self._values(found, language)
        return SITE.page("pages/unsubscribe.html", language=language, path=language.at(self._path(link)), **values)

    def refuse(self, problem: Problem, request: Request) -> Reply:
        return SITE.refuse(problem, request)

    async def _opened(self, caller: Caller, request: Request) -> Link:
        return await linked.opened(OWN, request, self._secret, self._limits, caller)

    def _path(self, link: Link) -> str:
        return f"{links.PATH}/{links.write(self._secret, OWN, link)}"

    async def _shown(
        self, caller: Caller, link: Link, language: Language, status: int = 200, *, notice: Notice | None = None
    ) -> Reply:
        try:
            found: Own = await self._look(caller, LookAtOwn(**link._asdict()))
        except Problem as problem:
            return _gone(problem, language)
        path = self._path(link)
        has_code = found.status == "registered"
        return SITE.page(
            "pages/own.html",
            status,
            language=language,
            notice=notice,
            qr=qr(links.own_url(self._settings, self._secret, *link)) if has_code else None,
            typed=spoken(links.write(self._secret, OWN, link)) if has_code else None,
            cancel_path=language.at(f"{path}/cancel"),
            unsubscribe_path=language.at(f"{path}/unsubscribe"),
            data_path=language.at(f"{path}/data"),
            token=self._tokens.issue(path),
            paid=False,  # whoever has just paid is led back to another page
            **self._values(found, language),
        )

    def _values(self, found: Own, language: Language) -> dict[str, Any]:
        """The values that the templates share."""
        return {
            "own": found,
            "zone": found.timezone or "UTC",
            "digits": digits(found.currency),
            "organizer_path": language.at(organizer_path(found.organizer_slug)),
            "event_path": language.at(event_path(found.organizer_slug, found.event_id)),
            "form_path": language.at(f"/events/{found.event_id}/registrations"),
            "calendar_path": language.at(f"/events/{found.event_id}/calendar.ics"),
        }


@lru_cache(1_000)
def qr(text: str) -> Markup:
    """The code of a registration, to be shown in a page. It is dark on light in any colour scheme, to be readable.

    It takes milliseconds of the processor, so it is kept for those who look again.
    """
    drawn = code(text)
    return Markup(drawn.svg_inline(border=4, dark="#000", light="#fff", svgclass="qr", lineclass=None, omitsize=True))  # noqa: S704 - only the code


def _gone(problem: Problem, language: Language, status: int = 410) -> Reply:
    """The page for a registration that is not found any more. Raises other problems."""
    if problem.type is not NOT_FOUND:
        raise problem
    return linked.gone(language, status)
