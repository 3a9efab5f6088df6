"""How a browser asks for push messages on the page of a person who waits: its address for that, and its worker."""

from holdfast.events.push import subscriptions
from holdfast.events.push.subscriptions import Subscribe, Unsubscribe
from holdfast.events.registrations.links import OWN_PAGE, require_link
from holdfast.events.resources import Database
from holdfast.events.site import SITE
from holdfast.kit.contract.caller import Caller
from holdfast.kit.contract.command import check
from holdfast.kit.contract.problems import Problem
from holdfast.kit.http.answers import PlainEndpoint
from holdfast.kit.http.handler import Access, Handler, Reply, Request, admit, envelope
from holdfast.kit.http.index import Route
from holdfast.kit.operations.operation import Operation, single
from holdfast.kit.operations.rate_limits import Limits
from holdfast.kit.operations.runner import Runner
from holdfast.kit.pages.forms import read_form, require_same_site
from holdfast.kit.pages.language import language_of
from holdfast.kit.pages.site import MEDIA_TYPES

PUSH_WORKER_PATH = "/registrations/push-worker.js"
"""The address of the worker that shows push messages. Its scope is the pages of registrations, as its address says."""

SUBSCRIBE = Operation("subscribe_to_push", None, single(subscriptions.subscribe), limit="forms")
"""Counts like a form."""

UNSUBSCRIBE = Operation("unsubscribe_from_push", None, single(subscriptions.unsubscribe))
OPERATIONS = (SUBSCRIBE, UNSUBSCRIBE)
"""The operations of the address. They have no routes and no tools of their own."""


def routes(database: Database, runner: Runner, limits: Limits) -> list[Route]:
    """The address to which a browser sends its subscription, and the scripts."""
    settings, secret = database.resources.settings, database.resources.secret
    access = Access.of(SUBSCRIBE, runner)

    async def answer(caller: Caller, request: Request) -> Reply:
        require_same_site(request, settings.base_url)
        link = await require_link(secret, OWN_PAGE, request.fields["link"], limits, caller)
        fields = await read_form(request)
        if fields.pop("stop", ""):
            await runner.run_of(UNSUBSCRIBE)(caller, check(Unsubscribe, {**link._asdict(), **fields}))
        else:
            await admit(access, limits, caller)
            language = language_of(request).code
            await runner.run_of(SUBSCRIBE)(caller, check(Subscribe, {**link._asdict(), **fields, "language": language}))
        return Reply(204)

    handler = Handler(Access("push_subscription"), limits, answer, envelope(Problem.body), methods=("POST",))
    return [
        Route("/registrations/{link}/push", handler),
        Route(PUSH_WORKER_PATH, PlainEndpoint(_worker_script)),
        *SITE.assets("push/push.js"),
    ]


def _worker_script(_: Request) -> Reply:
    headers = [(b"cache-control", b"no-cache"), (b"content-security-policy", b"default-src 'none'")]
    return Reply(200, SITE.content("push/push_worker.js"), headers, MEDIA_TYPES[".js"])
