"""The page on which a mail with a link to one's own data is asked for, behind the link in mails about registrations.

Mails are forwarded, and one's data is at all organizers: so this link alone does not open it.
"""

from starlette.routing import BaseRoute, Route

from holdfast.events.pages import linked
from holdfast.events.people import proof
from holdfast.events.people.proof import SendDataLink
from holdfast.events.registrations import links
from holdfast.events.registrations.links import OWN
from holdfast.events.registrations.own import LookAtOwn
from holdfast.events.resources import Database
from holdfast.events.site import SITE
from holdfast.kit.caller import Caller
from holdfast.kit.handler import Access, Handler, Reply, Request
from holdfast.kit.limits import Limits
from holdfast.kit.modes import single
from holdfast.kit.operation import Operation
from holdfast.kit.pages.forms import FormTokens, read_form, require_same_site
from holdfast.kit.pages.language import language_of
from holdfast.kit.problems import NOT_FOUND, Problem
from holdfast.kit.runner import Runner

SEND = Operation("send_data_link", None, single(proof.send))
OPERATIONS = (SEND,)
"""The operation of the page. It has no route and no tool of its own."""


def routes(database: Database, runner: Runner, limits: Limits) -> list[BaseRoute]:
    """The route of the page."""
    methods = ("GET", "HEAD", "POST")
    handler = Handler(
        Access("data_request"), limits, DataPage(database, runner, limits).answer, SITE.refuse, methods=methods
    )
    return [Route("/registrations/{link}/data", handler, methods=methods)]


class DataPage:
    """Says what the link is for, and sends it."""

    def __init__(self, database: Database, runner: Runner, limits: Limits) -> None:
        self._base_url, self._secret = database.resources.settings.base_url, database.resources.secret
        self._look, self._send = runner[linked.LOOK], runner[SEND]
        self._limits = limits
        self._tokens = FormTokens(self._secret.signer("data link forms"))

    async def answer(self, caller: Caller, request: Request) -> Reply:
        """Show the page, or send the mail if the form of the page asks for it."""
        link, language = await linked.opened(OWN, request, self._secret, self._limits, caller), language_of(request)
        try:
            await self._look(caller, LookAtOwn(**link._asdict()))
        except Problem as problem:
            if problem.type is not NOT_FOUND:
                raise
            return linked.gone(language)
        path = f"{links.PATH}/{links.write(self._secret, OWN, link)}"
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
