"""What the scripts of the check-in page ask for: the list, the news, the worker; and what they send: scans."""

from typing import Any

import msgspec
from starlette.requests import Request as StarletteRequest
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from holdfast.accounts.sessions import Session
from holdfast.events.check_in import operations
from holdfast.events.check_in.model import ListPeople, ListScans, StoreScans
from holdfast.events.console.check_in import FILES, check_in_path
from holdfast.events.console.frame import Console, organizer
from holdfast.events.paths import id_of
from holdfast.events.site import SITE
from holdfast.kit.command import C, check, numbered
from holdfast.kit.handler import NO_STORE, Reply, Request, encode, read_query
from holdfast.kit.problems import INVALID_JSON
from holdfast.kit.runner import Runner

WORKER = ("check_in/store.js", "check_in/sync.js", "check_in/worker.js")
"""The scripts of the worker. It is one file, since browsers look for a new version in that one."""


class CheckInDevice:
    """Answers requests of the scripts of the check-in page."""

    def __init__(self, console: Console, runner: Runner) -> None:
        self._console = console
        self._people, self._news = runner[operations.PEOPLE], runner[operations.NEWS]
        self._scan = runner[operations.SCAN]

    def routes(self) -> list[BaseRoute]:
        path = check_in_path("{event_id}")
        return [
            self._console.route(f"{path}/list", "check_in_list", self.list),
            self._console.route(f"{path}/news", "check_in_news", self.news),
            self._console.route(f"{path}/scans", "check_in_scans", self.scans, "POST"),
            Route(f"{path}/worker.js", worker),
            *SITE.assets(*FILES),
        ]

    async def list(self, session: Session, request: Request) -> Reply:
        """A portion of the list."""
        return _json(await self._people(organizer(session), _asked(ListPeople, request)))

    async def news(self, session: Session, request: Request) -> Reply:
        """What a device does not know yet; with the token for what it sends next, in this session."""
        found = await self._news(organizer(session), _asked(ListScans, request))
        return _json({**msgspec.to_builtins(found), "token": self._console.door.token(session)})

    async def scans(self, session: Session, request: Request) -> Reply:
        """Store scans. They come in a form, since a form proves that it is of this site and session."""
        fields = await self._console.door.read(session, request)
        raw: dict[str, Any] = {"event_id": _event(request), "device": fields.get("device") or None}
        try:
            raw["scans"] = msgspec.json.decode(fields.get("scans", ""))
        except msgspec.DecodeError as error:
            raise INVALID_JSON() from error
        return _json(await self._scan(organizer(session), check(StoreScans, raw)))


async def worker(request: StarletteRequest) -> Response:
    """The worker of one check-in: its scope is the page beside it, and nothing else of the site."""
    content = b"\n".join(SITE.content(each) for each in WORKER)
    headers = {
        "Cache-Control": "no-cache",
        "Content-Security-Policy": "default-src 'none'; connect-src 'self'",
        "Service-Worker-Allowed": request.url.path.removesuffix("/worker.js"),
        "X-Content-Type-Options": "nosniff",
    }
    return Response(content, headers=headers, media_type="text/javascript")


def _event(request: Request) -> int:
    return id_of(request.scope["path_params"]["event_id"])


def _asked(kind: type[C], request: Request) -> C:
    return check(kind, {**numbered(kind, read_query(request.query)), "event_id": _event(request)})


def _json(content: Any) -> Reply:
    return Reply(200, encode(content), [NO_STORE])
