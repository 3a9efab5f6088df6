"""Check-in for whoever stands at the entrance: a typed code, a search, and a report; scripts make it a scanner."""

import time
import uuid
from collections.abc import Mapping, Sequence
from typing import Any, get_args

from starlette.routing import BaseRoute

from holdfast.accounts.sessions import Session
from holdfast.events.check_in import operations
from holdfast.events.check_in.model import (
    FindPeople,
    Found,
    Head,
    LookAtCheckIn,
    Say,
    ScanId,
    Standing,
    StoreScans,
    TakeBack,
    Verdict,
)
from holdfast.events.console.frame import HOME, Console, organizer
from holdfast.events.paths import id_of
from holdfast.kit.command import check
from holdfast.kit.handler import Reply, Request, read_query
from holdfast.kit.problems import BAD_REQUEST, NOT_FOUND, VALIDATION_FAILED, Problem
from holdfast.kit.runner import Runner

FILES = (
    "check_in/codes.js",
    "check_in/sync.js",
    "check_in/qr_text.js",
    "check_in/qr_find.js",
    "check_in/qr.js",
    "check_in/camera.js",
    "console/check_in.js",
)
"""The scripts of the page, in their order, after those of every page."""

FORGETTING = ("check_in/store.js", "check_in/forget.js")
"""The scripts that delete the lists of people before somebody signs out."""

SAYS = (*get_args(Say), "unlisted", "no_list", "asking")
"""What scripts may have to say: also that they do not know."""

NOTICES = ("taken_back",)


def check_in_path(event_id: int | str) -> str:
    """The path of the check-in of an event."""
    return f"{HOME}/events/{event_id}/check-in"


class CheckInPage:
    """Answers requests for the check-in of an event."""

    def __init__(self, console: Console, runner: Runner) -> None:
        self._console = console
        self._look, self._find = runner[operations.LOOK], runner[operations.FIND]
        self._scan, self._take_back = runner[operations.SCAN], runner[operations.TAKE_BACK]

    def routes(self) -> list[BaseRoute]:
        path = check_in_path("{event_id}")
        return [
            self._console.route(path, "check_in", self.answer, "POST"),
            self._console.route(f"{path}/shell", "check_in_shell", self.shell),
        ]

    async def answer(self, session: Session, request: Request) -> Reply:
        """Show how the check-in stands, check somebody in, or take that back."""
        event_id = id_of(request.scope["path_params"]["event_id"])
        if request.method != "POST":
            return await self._shown(session, request, event_id, read_query(request.query))
        fields = await self._console.door.read(session, request)
        if fields.get("do") == "take back":
            await self._undo(session, event_id, fields)
            return self._console.to(request, f"{check_in_path(event_id)}?done=taken_back#report")
        if fields.get("do") != "scan":
            raise BAD_REQUEST("The form does not say what to do.", hint="Open the page again and use its buttons.")
        try:
            verdict = await self._scanned(session, event_id, fields)
        except Problem as problem:
            if problem.type is not VALIDATION_FAILED:
                raise
            return await self._shown(session, request, event_id, fields, 422, errors=problem.errors)
        return await self._shown(session, request, event_id, fields, verdict=verdict)

    async def shell(self, session: Session, request: Request) -> Reply:
        """The page without any people in it: browsers keep it, and open it without a network."""
        event_id = id_of(request.scope["path_params"]["event_id"])
        standing: Standing = await self._look(organizer(session), LookAtCheckIn(event_id=event_id))
        return self._page(session, request, standing.event)

    async def _scanned(self, session: Session, event_id: int, fields: Mapping[str, str]) -> Verdict:
        scan = {"id": fields.get("id"), "text": fields.get("text"), "told_at": time.time_ns() // 1_000_000}
        raw: dict[str, Any] = {"event_id": event_id, "device": fields.get("device") or None, "scans": [scan]}
        command = check(StoreScans, raw)
        [verdict] = await self._scan(organizer(session), command)
        return verdict

    async def _undo(self, session: Session, event_id: int, fields: Mapping[str, str]) -> None:
        try:
            command = check(TakeBack, {"event_id": event_id, "scan_id": fields.get("scan", "")})
        except Problem as problem:
            # What is no id names no scan.
            raise NOT_FOUND() if problem.type is VALIDATION_FAILED else problem from problem
        await self._take_back(organizer(session), command)

    async def _shown(
        self,
        session: Session,
        request: Request,
        event_id: int,
        asked: Mapping[str, str],
        status: int = 200,
        *,
        verdict: Verdict | None = None,
        errors: Mapping[str, Sequence[str]] | None = None,
    ) -> Reply:
        standing: Standing = await self._look(organizer(session), LookAtCheckIn(event_id=event_id))
        text = asked.get("q", "")
        found: list[Found] = []
        if text:
            found = await self._find(organizer(session), check(FindPeople, {"event_id": event_id, "text": text}))
        return self._page(
            session,
            request,
            standing.event,
            status,
            standing=standing,
            called=asked.get("device", ""),
            sought=text,
            found=found,
            verdict=verdict,
            errors=errors or {},
            notice=asked.get("done") if asked.get("done") in NOTICES else None,
        )

    def _page(self, session: Session, request: Request, event: Head, status: int = 200, **values: Any) -> Reply:
        usual: dict[str, Any] = {
            "standing": None,
            "verdict": None,
            "errors": {},
            "called": "",
            "event": event,
            "zone": event.timezone or "UTC",
            "path": check_in_path(event.id),
            "fresh": fresh_id,
            "files": FILES,
            "says": SAYS,
        }
        return self._console.page(session, request, "check_in.html", status, **{**usual, **values})


def fresh_id() -> ScanId:
    """The id of a scan that a form may store: once, also if the form is sent twice."""
    return str(uuid.uuid4())
