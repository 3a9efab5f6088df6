"""The pages of a person's own data: one that mails a link to the person, and those behind that link, where the person
downloads the data or erases it.

A GET changes nothing. Each shown page contains its own random text (`held`). The first page whose button is pressed
uses up the link: from then on only its text works. So a used link is useless to a stranger who finds it.

People forward mails, and the data covers all organizers. So the link of a registration alone does not open the data.
"""

import hashlib
import secrets
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, NamedTuple

import msgspec
import structlog

from holdfast.events import ownership
from holdfast.events.pages.registration import own_registration_pages
from holdfast.events.people import proof
from holdfast.events.people.model import PEOPLE_PATH, DataLink, Erasure, Export, path, read
from holdfast.events.people.proof import CheckDataLink, EraseOwnData, ExportOwnData, PreviewOwnErasure, SendDataLink
from holdfast.events.registrations import links
from holdfast.events.registrations.links import OWN_PAGE
from holdfast.events.registrations.own_registration import GetOwnRegistration, OwnRegistration
from holdfast.events.resources import Database
from holdfast.events.site import SITE, refuse_link
from holdfast.kit.contract.caller import Caller
from holdfast.kit.contract.problems import FORBIDDEN, NOT_FOUND, Problem
from holdfast.kit.http.handler import Access, Handler, Reply, Request
from holdfast.kit.http.index import Route
from holdfast.kit.operations.operation import Operation, single
from holdfast.kit.operations.operation import read as reading
from holdfast.kit.operations.rate_limits import Limits
from holdfast.kit.operations.runner import Runner, RunOperation
from holdfast.kit.pages.forms import FormTokens, read_form, require_same_site
from holdfast.kit.pages.language import Language, language_of
from holdfast.kit.pages.site import redirect, security_headers

READ_LINK = Operation("check_data_link", None, reading(proof.check))
EXPORT = Operation("export_own_data", None, single(proof.export))
PREVIEW = Operation("preview_own_erasure", None, single(proof.preview))
ERASE = Operation("erase_own_data", None, single(ownership.erase_own))
OPERATIONS = (READ_LINK, EXPORT, PREVIEW, ERASE)
"""The operations of the pages. They have no routes and no tools of their own."""

MAX_LISTED_REGISTRATIONS = 100
"""The most registrations that the confirmation page lists."""

log = structlog.get_logger()


def routes(database: Database, runner: Runner, limits: Limits) -> list[Route]:
    """The routes of the pages of a person's own data."""
    pages = OwnDataPages(database, runner, limits)

    def page(suffix: str, name: str, answer: Callable[[Caller, Request], Awaitable[Reply]], *methods: str) -> Route:
        handler = Handler(Access(name), limits, answer, refuse_link, methods=("GET", "HEAD", *methods))
        return Route(f"{PEOPLE_PATH}/{{link}}{suffix}", handler)

    return [
        page("", "own_data", pages.show),
        page("/export", "own_data_export", pages.export, "POST"),
        page("/erase", "own_data_erasure", pages.erase, "POST"),
    ]


class ButtonPress(NamedTuple):
    """A button press on a page of a link. `random_text`: that of the page."""

    link: DataLink
    random_text: str
    fields: Mapping[str, str]

    @property
    def holder(self) -> bytes:
        return hashlib.sha256(self.random_text.encode()).digest()


class OwnDataPages:
    """Answers requests of people about their own data."""

    def __init__(self, database: Database, runner: Runner, limits: Limits) -> None:
        self._base_url, self._secret = database.resources.settings.base_url, database.resources.secret
        self._check_link, self._export, self._preview, self._erase = (
            runner.run_of(operation) for operation in OPERATIONS
        )
        self._limits = limits
        self._tokens = FormTokens(self._secret.signer("own data forms"))

    async def show(self, caller: Caller, request: Request) -> Reply:
        """Show the buttons. The page contains no personal data, since programs follow links in mails too."""
        link, language = await self._read_link(caller, request), language_of(request)
        try:
            await self._check_link(caller, CheckDataLink(**link._asdict()))
        except Problem as problem:
            return _ended_page(problem, language)
        return self._page("pages/person.html", link, secrets.token_urlsafe(24), language)

    async def export(self, caller: Caller, request: Request) -> Reply:
        """Send all data as a file, if the page asks for it."""
        language = language_of(request)
        press = await self._read_press(caller, request, language)
        if isinstance(press, Reply):
            return press
        command = ExportOwnData(**press.link._asdict(), holder=press.holder)
        exported = await _run(self._export, caller, command, language)
        if isinstance(exported, Reply):
            return exported
        assert isinstance(exported, Export)
        content = msgspec.json.format(msgspec.json.encode(exported), indent=2)
        named = (b"content-disposition", b'attachment; filename="my-data.json"')
        return Reply(200, content, [*security_headers(), named], b"application/json")

    async def erase(self, caller: Caller, request: Request) -> Reply:
        """Show what an erasure would do; erase the data if that page confirms it."""
        language = language_of(request)
        press = await self._read_press(caller, request, language)
        if isinstance(press, Reply):
            return press
        confirmed = press.fields.get("confirmed") == "yes"
        kind, run = (EraseOwnData, self._erase) if confirmed else (PreviewOwnErasure, self._preview)
        erasure = await _run(run, caller, kind(**press.link._asdict(), holder=press.holder), language)
        if isinstance(erasure, Reply):
            return erasure
        assert isinstance(erasure, Erasure)
        if confirmed:
            log.info("person erased", account=erasure.account_id)
            return SITE.page("pages/person_end.html", language=language, state="erased")
        return self._page(
            "pages/person_erase.html",
            press.link,
            press.random_text,
            language,
            erasure=erasure,
            listed=erasure.cancelled[:MAX_LISTED_REGISTRATIONS],
            is_paid=any(registration.amount_paid for registration in erasure.cancelled),
        )

    async def _read_link(self, caller: Caller, request: Request) -> DataLink:
        """The link in the address. Raises `not_found` if its signature is wrong, and `rate_limited`."""
        link = read(self._secret, request.fields["link"])
        if link is None:
            await self._limits.hit("wrong links", caller.name)
            raise NOT_FOUND()
        return link

    async def _read_press(self, caller: Caller, request: Request, language: Language) -> ButtonPress | Reply:
        """The button press; or the page to show instead. Raises `forbidden` for a form of another site."""
        link = await self._read_link(caller, request)
        link_path = path(self._secret, link)
        if request.method != "POST":
            return redirect(language.at(link_path))
        require_same_site(request, self._base_url)
        fields = await read_form(request)
        random_text = fields.get("held", "")
        if self._tokens.check(f"{link_path} {random_text}", fields.get("token", "")) != "good":
            return redirect(language.at(link_path))
        return ButtonPress(link, random_text, fields)

    def _page(self, template: str, link: DataLink, random_text: str, language: Language, **values: Any) -> Reply:
        link_path = path(self._secret, link)
        return SITE.page(
            template,
            language=language,
            export_path=language.at(f"{link_path}/export"),
            erase_path=language.at(f"{link_path}/erase"),
            random_text=random_text,
            token=self._tokens.issue(f"{link_path} {random_text}"),
            **values,
        )


async def _run(run: RunOperation, caller: Caller, command: Any, language: Language) -> Any:
    """The answer of an operation; or the page for an invalid link, or for an organizer."""
    try:
        return await run(caller, command)
    except Problem as problem:
        return _ended_page(problem, language)


def _ended_page(problem: Problem, language: Language) -> Reply:
    if problem.type is FORBIDDEN:
        return SITE.page("pages/person_end.html", 403, language=language, state="organizer")
    if problem.type is NOT_FOUND:
        return SITE.page("pages/person_end.html", 410, language=language, state="gone")
    raise problem


SEND = Operation("send_data_link", None, single(proof.send))
REQUEST_OPERATIONS = (SEND,)
"""The operation of the page. It has no route and no tool of its own."""


def request_routes(database: Database, runner: Runner, limits: Limits) -> list[Route]:
    """The route of the page."""
    methods = ("GET", "HEAD", "POST")
    handler = Handler(
        Access("data_request"), limits, DataPage(database, runner, limits).answer, refuse_link, methods=methods
    )
    return [Route("/registrations/{link}/data", handler)]


class DataPage:
    """Answers requests for the page that explains the link and sends it."""

    def __init__(self, database: Database, runner: Runner, limits: Limits) -> None:
        self._base_url, self._secret = database.resources.settings.base_url, database.resources.secret
        self._get_registration, self._send = (
            runner.run_of(own_registration_pages.READ_REGISTRATION),
            runner.run_of(SEND),
        )
        self._limits = limits
        self._tokens = FormTokens(self._secret.signer("data link forms"))

    async def answer(self, caller: Caller, request: Request) -> Reply:
        """Show the page; with POST and a valid token send the mail."""
        link, language = (
            await links.require_link(self._secret, OWN_PAGE, request.fields["link"], self._limits, caller),
            language_of(request),
        )
        try:
            registration: OwnRegistration = await self._get_registration(caller, GetOwnRegistration(**link._asdict()))
        except Problem as problem:
            if problem.type is not NOT_FOUND:
                raise
            return own_registration_pages.gone_page(language, link.event_id)
        path = f"{links.REGISTRATIONS_PATH}/{links.write(self._secret, OWN_PAGE, link)}"
        state, status = "asking", 200
        if request.method == "POST":
            require_same_site(request, self._base_url)
            fields = await read_form(request)
            if self._tokens.check(path, fields.get("token", "")) == "good":
                await self._send(caller, SendDataLink(**link._asdict(), language=language.code))
                state = "sent"
            else:
                state, status = "old", 422
        return SITE.page(
            "pages/data.html",
            status,
            language=language,
            state=state,
            own=registration,
            path=language.at(path),
            token=self._tokens.issue(path),
        )
