"""The page that sends a person a mail with a link to their own data, behind the link in mails about registrations.

People forward mails, and the data covers all organizers. So the link of a registration alone does not open the data.
"""

from holdfast.events.pages.registration import own_registration
from holdfast.events.people import proof
from holdfast.events.people.proof import SendDataLink
from holdfast.events.registrations import links
from holdfast.events.registrations.links import OWN_PAGE
from holdfast.events.registrations.own_registration import GetOwnRegistration
from holdfast.events.resources import Database
from holdfast.events.site import SITE
from holdfast.kit.contract.caller import Caller
from holdfast.kit.contract.problems import NOT_FOUND, Problem
from holdfast.kit.http.handler import Access, Handler, Reply, Request
from holdfast.kit.http.index import Route
from holdfast.kit.pages.forms import FormTokens, read_form, require_same_site
from holdfast.kit.pages.language import language_of
from holdfast.kit.running.operation import Operation
from holdfast.kit.running.rate_limits import Limits
from holdfast.kit.running.run_modes import single
from holdfast.kit.running.runner import Runner

SEND = Operation("send_data_link", None, single(proof.send))
OPERATIONS = (SEND,)
"""The operation of the page. It has no route and no tool of its own."""


def routes(database: Database, runner: Runner, limits: Limits) -> list[Route]:
    """The route of the page."""
    methods = ("GET", "HEAD", "POST")
    handler = Handler(
        Access("data_request"), limits, DataPage(database, runner, limits).answer, SITE.refuse, methods=methods
    )
    return [Route("/registrations/{link}/data", handler)]


class DataPage:
    """Answers requests for the page that explains the link and sends it."""

    def __init__(self, database: Database, runner: Runner, limits: Limits) -> None:
        self._base_url, self._secret = database.resources.settings.base_url, database.resources.secret
        self._get_registration, self._send = runner[own_registration.READ_REGISTRATION], runner[SEND]
        self._limits = limits
        self._tokens = FormTokens(self._secret.signer("data link forms"))

    async def answer(self, caller: Caller, request: Request) -> Reply:
        """Show the page; with POST and a valid token send the mail."""
        link, language = (
            await own_registration.read_link(OWN_PAGE, request, self._secret, self._limits, caller),
            language_of(request),
        )
        try:
            await self._get_registration(caller, GetOwnRegistration(**link._asdict()))
        except Problem as problem:
            if problem.type is not NOT_FOUND:
                raise
            return own_registration.gone_page(language)
        path = f"{links.PATH}/{links.write(self._secret, OWN_PAGE, link)}"
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
            path=language.at(path),
            token=self._tokens.issue(path),
        )
