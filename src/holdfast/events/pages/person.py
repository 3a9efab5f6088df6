"""The pages of one's own data, behind the link that was sent to one's own address: download it, erase it.

Looking changes nothing. Each page holds a random text of its own; the one on which a button is pressed first uses up
the link, and goes on by its text. So a link that was used is of no use to whoever finds it later.
"""

import hashlib
import secrets
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, NamedTuple

import msgspec
import structlog
from starlette.routing import BaseRoute, Route

from holdfast.events.people import proof
from holdfast.events.people.links import PATH, DataLink, path, read
from holdfast.events.people.model import Erasure, Export
from holdfast.events.people.proof import EraseOwn, ExportOwn, LookAtLink, PreviewOwn
from holdfast.events.resources import Database
from holdfast.events.site import SITE
from holdfast.kit.caller import Caller
from holdfast.kit.handler import Access, Handler, Reply, Request
from holdfast.kit.limits import Limits
from holdfast.kit.modes import read as reading
from holdfast.kit.modes import single
from holdfast.kit.operation import Operation
from holdfast.kit.pages.forms import FormTokens, read_form, require_same_site
from holdfast.kit.pages.language import Language, language_of
from holdfast.kit.pages.site import redirect, secured
from holdfast.kit.problems import FORBIDDEN, NOT_FOUND, Problem
from holdfast.kit.runner import Run, Runner

LOOK = Operation("look_at_data_link", None, reading(proof.look))
EXPORT = Operation("export_own_data", None, single(proof.export))
PREVIEW = Operation("preview_own_erasure", None, single(proof.preview))
ERASE = Operation("erase_own_data", None, single(proof.erase))
OPERATIONS = (LOOK, EXPORT, PREVIEW, ERASE)
"""The operations of the pages. They have no routes and no tools of their own."""

SHOWN = 100
"""The most registrations that the page lists which asks for the confirmation."""

log = structlog.get_logger()


def routes(database: Database, runner: Runner, limits: Limits) -> list[BaseRoute]:
    """The routes of one's own data."""
    pages = PersonPages(database, runner, limits)

    def page(suffix: str, name: str, answer: Callable[[Caller, Request], Awaitable[Reply]], *methods: str) -> Route:
        handler = Handler(Access(name), limits, answer, SITE.refuse, methods=("GET", "HEAD", *methods))
        return Route(f"{PATH}/{{link}}{suffix}", handler, methods=("GET", "HEAD", *methods))

    return [
        page("", "own_data", pages.look),
        page("/export", "own_data_export", pages.export, "POST"),
        page("/erase", "own_data_erasure", pages.erase, "POST"),
    ]


class Pressed(NamedTuple):
    """A button that was pressed on a page of a link. `held`: what the page holds."""

    link: DataLink
    held: str
    fields: Mapping[str, str]

    @property
    def holder(self) -> bytes:
        return hashlib.sha256(self.held.encode()).digest()


class PersonPages:
    """Answers requests of people about all of their data."""

    def __init__(self, database: Database, runner: Runner, limits: Limits) -> None:
        self._base_url, self._secret = database.resources.settings.base_url, database.resources.secret
        self._look, self._export, self._preview, self._erase = (runner[each] for each in OPERATIONS)
        self._limits = limits
        self._tokens = FormTokens(self._secret.signer("own data forms"))

    async def look(self, caller: Caller, request: Request) -> Reply:
        """Show what can be done. It says nothing about the person: programs follow links in mails too."""
        link, language = await self._opened(caller, request), language_of(request)
        try:
            await self._look(caller, LookAtLink(**link._asdict()))
        except Problem as problem:
            return _ended(problem, language)
        return self._page("pages/person.html", link, secrets.token_urlsafe(24), language)

    async def export(self, caller: Caller, request: Request) -> Reply:
        """Send everything as a file, if the page asks for it."""
        language = language_of(request)
        pressed = await self._pressed(caller, request, language)
        if isinstance(pressed, Reply):
            return pressed
        command = ExportOwn(**pressed.link._asdict(), holder=pressed.holder)
        exported = await _run(self._export, caller, command, language)
        if isinstance(exported, Reply):
            return exported
        assert isinstance(exported, Export)
        content = msgspec.json.format(msgspec.json.encode(exported), indent=2)
        named = (b"content-disposition", b'attachment; filename="my-data.json"')
        return Reply(200, content, [*secured(), named], b"application/json")

    async def erase(self, caller: Caller, request: Request) -> Reply:
        """Say what erasing would do; and do it, if the page that said so asks for it."""
        language = language_of(request)
        pressed = await self._pressed(caller, request, language)
        if isinstance(pressed, Reply):
            return pressed
        confirmed = pressed.fields.get("confirmed") == "yes"
        kind, run = (EraseOwn, self._erase) if confirmed else (PreviewOwn, self._preview)
        erasure = await _run(run, caller, kind(**pressed.link._asdict(), holder=pressed.holder), language)
        if isinstance(erasure, Reply):
            return erasure
        assert isinstance(erasure, Erasure)
        if confirmed:
            log.info("person erased", account=erasure.account_id)
            return SITE.page("pages/person_end.html", language=language, state="erased")
        return self._page(
            "pages/person_erase.html",
            pressed.link,
            pressed.held,
            language,
            erasure=erasure,
            shown=erasure.cancelled[:SHOWN],
            is_paid=any(each.amount_paid for each in erasure.cancelled),
        )

    async def _opened(self, caller: Caller, request: Request) -> DataLink:
        """The link in the address. Raises `not_found` if it was never made, and `rate_limited`."""
        link = read(self._secret, request.scope["path_params"]["link"])
        if link is None:
            await self._limits.hit("wrong links", caller.name)
            raise NOT_FOUND()
        return link

    async def _pressed(self, caller: Caller, request: Request, language: Language) -> Pressed | Reply:
        """The button that was pressed; or the page to show instead. Raises `forbidden` for a form of another site."""
        link = await self._opened(caller, request)
        there = path(self._secret, link)
        if request.method != "POST":
            return redirect(language.at(there))
        require_same_site(request, self._base_url)
        fields = await read_form(request)
        held = fields.get("held", "")
        if self._tokens.check(f"{there} {held}", fields.get("token", "")) != "good":
            return redirect(language.at(there))
        return Pressed(link, held, fields)

    def _page(self, template: str, link: DataLink, held: str, language: Language, **values: Any) -> Reply:
        there = path(self._secret, link)
        return SITE.page(
            template,
            language=language,
            export_path=language.at(f"{there}/export"),
            erase_path=language.at(f"{there}/erase"),
            held=held,
            token=self._tokens.issue(f"{there} {held}"),
            **values,
        )


async def _run(run: Run, caller: Caller, command: Any, language: Language) -> Any:
    """The answer of an operation; or the page for a link that does not work, or for an organizer."""
    try:
        return await run(caller, command)
    except Problem as problem:
        return _ended(problem, language)


def _ended(problem: Problem, language: Language) -> Reply:
    if problem.type is FORBIDDEN:
        return SITE.page("pages/person_end.html", 403, language=language, state="organizer")
    if problem.type is NOT_FOUND:
        return SITE.page("pages/person_end.html", 410, language=language, state="gone")
    raise problem
