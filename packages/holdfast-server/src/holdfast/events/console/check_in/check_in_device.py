"""The requests of the scripts of the check-in page: read the list, changes and the service worker; send scans."""

from typing import Any
from urllib.parse import quote

import msgspec

from holdfast.accounts.sessions import Session
from holdfast.events.check_in import operations
from holdfast.events.check_in.model import ListChanges, ListPeople, StoreScans
from holdfast.events.console.check_in.check_in_pages import PAGE_SCRIPTS, check_in_path
from holdfast.events.console.frame import Console, organizer
from holdfast.events.paths import id_of
from holdfast.events.site import SITE
from holdfast.kit.contract.command import C, check, with_integers
from holdfast.kit.contract.problems import INVALID_JSON
from holdfast.kit.http.answers import PlainEndpoint
from holdfast.kit.http.handler import NO_STORE, Reply, Request, encode, read_query
from holdfast.kit.http.index import Route
from holdfast.kit.operations.runner import Runner
from holdfast.kit.pages.site import MEDIA_TYPES

WORKER_SCRIPTS = ("console/check_in/store.js", "console/check_in/sync.js", "console/check_in/worker.js")
"""The scripts of the service worker. They are served as one file, since browsers check one file for a new version."""


class CheckInDevice:
    """Answers requests of the scripts of the check-in page."""

    def __init__(self, console: Console, runner: Runner) -> None:
        self._console = console
        self._people, self._list_changes = runner.run_of(operations.LIST_PEOPLE), runner.run_of(operations.LIST_CHANGES)
        self._scan = runner.run_of(operations.STORE_SCANS)

    def routes(self) -> list[Route]:
        path = check_in_path("{event_id}")
        return [
            self._console.route(f"{path}/list", "check_in_list", self.list),
            self._console.route(f"{path}/news", "check_in_news", self.news),
            self._console.route(f"{path}/scans", "check_in_scans", self.scans, "POST"),
            Route(f"{path}/worker.js", PlainEndpoint(_worker_script)),
            *SITE.assets(*PAGE_SCRIPTS),
        ]

    async def list(self, session: Session, request: Request) -> Reply:
        """One batch of the list of people."""
        return _json(await self._people(organizer(session), _command(ListPeople, request)))

    async def news(self, session: Session, request: Request) -> Reply:
        """The changes that a device does not have yet, with the form token for its next request in this session."""
        changes = await self._list_changes(organizer(session), _command(ListChanges, request))
        return _json({**msgspec.to_builtins(changes), "token": self._console.signed_in.token(session)})

    async def scans(self, session: Session, request: Request) -> Reply:
        """Store scans. They are sent in a form, since its token proves this site and this session."""
        fields = await self._console.signed_in.read(session, request)
        raw: dict[str, Any] = {"event_id": _event(request), "device": fields.get("device") or None}
        try:
            raw["scans"] = msgspec.json.decode(fields.get("scans", ""))
        except (ValueError, RecursionError) as error:  # msgspec's errors are ValueErrors
            raise INVALID_JSON() from error
        return _json(await self._scan(organizer(session), check(StoreScans, raw)))


def _worker_script(request: Request) -> Reply:
    """The service worker of one check-in. Its scope is the check-in page, not the rest of the site."""
    content = b"\n".join(SITE.content(path) for path in WORKER_SCRIPTS)
    headers = [
        (b"cache-control", b"no-cache"),
        (b"content-security-policy", b"default-src 'none'; connect-src 'self'"),
        (b"service-worker-allowed", quote(request.path.removesuffix("/worker.js")).encode()),
    ]
    return Reply(200, content, headers, MEDIA_TYPES[".js"])


def _event(request: Request) -> int:
    return id_of(request.fields["event_id"])


def _command(kind: type[C], request: Request) -> C:
    return check(kind, {**with_integers(kind, read_query(request.query)), "event_id": _event(request)})


def _json(content: Any) -> Reply:
    return Reply(200, encode(content), [NO_STORE])
