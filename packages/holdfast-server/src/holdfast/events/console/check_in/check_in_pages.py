"""The check-in page of an event: type a code, search for people, read a report, give the seats of no-shows to others.
Scripts add a scanner.
"""

import time
import uuid
from collections.abc import Mapping, Sequence
from typing import Any, get_args

from holdfast.accounts.sessions import Session
from holdfast.events.check_in import operations, seat_handover
from holdfast.events.check_in.model import (
    CheckInEvent,
    CheckInStatus,
    FindPeople,
    GetCheckInStatus,
    PersonMatch,
    ScanId,
    StoreScans,
    TakeBack,
    Verdict,
    VerdictCode,
)
from holdfast.events.check_in.seat_handover import GiveSeats, HandoverPreview, SeatHandover
from holdfast.events.console.frame import HOME, Console, organizer
from holdfast.events.paths import id_of
from holdfast.kit.contract.command import check
from holdfast.kit.contract.problems import BAD_REQUEST, NOT_FOUND, VALIDATION_FAILED, Problem
from holdfast.kit.http.handler import Reply, Request, read_query
from holdfast.kit.http.index import Route
from holdfast.kit.operations.runner import Runner

PAGE_SCRIPTS = (
    "console/check_in/codes.js",
    "console/check_in/sync.js",
    "console/check_in/qr_reader/qr_text.js",
    "console/check_in/qr_reader/qr_find.js",
    "console/check_in/qr_reader/qr.js",
    "console/check_in/camera.js",
    "console/check_in/signal.js",
    "console/check_in/check_in.js",
)
"""The scripts of the page in their order. They come after the scripts of every page."""

SIGN_OUT_SCRIPTS = ("console/check_in/store.js", "console/check_in/forget.js")
"""The scripts that delete the stored lists of people before the sign-out."""

VERDICT_CODES = (*get_args(VerdictCode), "unlisted", "no_list", "asking")
"""The codes that the scripts can show: those of the service, and those for a missing answer."""

NOTICES = ("taken_back",)


def check_in_path(event_id: int | str) -> str:
    """The path of the check-in page of an event."""
    return f"{HOME}/events/{event_id}/check-in"


class CheckInPage:
    """Answers requests for the check-in page of an event."""

    def __init__(self, console: Console, runner: Runner) -> None:
        self._console = console
        self._get_check_in, self._find = runner.run_of(operations.READ_STATUS), runner.run_of(operations.FIND_PEOPLE)
        self._scan, self._take_back = runner.run_of(operations.STORE_SCANS), runner.run_of(operations.TAKE_BACK)

    def routes(self) -> list[Route]:
        path = check_in_path("{event_id}")
        return [
            self._console.route(path, "check_in", self.answer, "POST"),
            self._console.route(f"{path}/shell", "check_in_shell", self.shell),
        ]

    async def answer(self, session: Session, request: Request) -> Reply:
        """Show the status of the check-in; with POST store a scan or undo one."""
        event_id = id_of(request.fields["event_id"])
        if request.method != "POST":
            return await self._show(session, request, event_id, read_query(request.query))
        fields = await self._console.signed_in.read(session, request)
        if fields.get("do") == "take back":
            await self._undo(session, event_id, fields)
            return self._console.redirect(request, f"{check_in_path(event_id)}?done=taken_back#report")
        if fields.get("do") != "scan":
            raise BAD_REQUEST("The form does not say what to do.", hint="Open the page again and use its buttons.")
        try:
            verdict = await self._store_scan(session, event_id, fields)
        except Problem as problem:
            if problem.type is not VALIDATION_FAILED:
                raise
            return await self._show(session, request, event_id, fields, 422, errors=problem.errors)
        return await self._show(session, request, event_id, fields, verdict=verdict)

    async def shell(self, session: Session, request: Request) -> Reply:
        """The page without any people. Browsers cache it and open it offline."""
        event_id = id_of(request.fields["event_id"])
        check_in: CheckInStatus = await self._get_check_in(organizer(session), GetCheckInStatus(event_id=event_id))
        return self._page(session, request, check_in.event)

    async def _store_scan(self, session: Session, event_id: int, fields: Mapping[str, str]) -> Verdict:
        scan = {"id": fields.get("id"), "text": fields.get("text"), "told_at": time.time_ns() // 1_000_000}
        raw: dict[str, Any] = {"event_id": event_id, "device": fields.get("device") or None, "scans": [scan]}
        command = check(StoreScans, raw)
        [verdict] = await self._scan(organizer(session), command)
        return verdict

    async def _undo(self, session: Session, event_id: int, fields: Mapping[str, str]) -> None:
        try:
            command = check(TakeBack, {"event_id": event_id, "scan_id": fields.get("scan", "")})
        except Problem as problem:
            # An invalid id names no scan.
            raise NOT_FOUND() if problem.type is VALIDATION_FAILED else problem from problem
        await self._take_back(organizer(session), command)

    async def _show(
        self,
        session: Session,
        request: Request,
        event_id: int,
        fields: Mapping[str, str],
        status: int = 200,
        *,
        verdict: Verdict | None = None,
        errors: Mapping[str, Sequence[str]] | None = None,
    ) -> Reply:
        check_in: CheckInStatus = await self._get_check_in(organizer(session), GetCheckInStatus(event_id=event_id))
        text = fields.get("q", "")
        matches: list[PersonMatch] = []
        if text:
            matches = await self._find(organizer(session), check(FindPeople, {"event_id": event_id, "text": text}))
        return self._page(
            session,
            request,
            check_in.event,
            status,
            check_in=check_in,
            called=fields.get("device"),
            search_text=text,
            matches=matches,
            verdict=verdict,
            errors=errors or {},
            notice=fields.get("done") if fields.get("done") in NOTICES else None,
        )

    def _page(self, session: Session, request: Request, event: CheckInEvent, status: int = 200, **values: Any) -> Reply:
        usual: dict[str, Any] = {
            "check_in": None,
            "verdict": None,
            "errors": {},
            "called": None,
            "event": event,
            "zone": event.timezone or "UTC",
            "path": check_in_path(event.id),
            "fresh": new_scan_id,
            "files": PAGE_SCRIPTS,
            "says": VERDICT_CODES,
        }
        return self._console.page(session, request, "check_in/check_in.html", status, **{**usual, **values})


def new_scan_id() -> ScanId:
    """A new id for the scan of a form. A form that is sent twice stores one scan."""
    return str(uuid.uuid4())


class SeatHandoverPage:
    """Answers requests for the page about the seats of no-shows."""

    def __init__(self, console: Console, runner: Runner) -> None:
        self._console = console
        self._preview, self._give = runner.run_of(seat_handover.PREVIEW), runner.run_of(seat_handover.GIVE_SEATS)

    def routes(self) -> list[Route]:
        path = f"{check_in_path('{event_id}')}/no-shows"
        # The name is a label of metrics, which programs of operators watch since version 0.2.0.
        return [self._console.route(path, "no_shows", self.answer, "POST")]

    async def answer(self, session: Session, request: Request) -> Reply:
        """Show who would get a seat; with POST give the seats away."""
        event_id = id_of(request.fields["event_id"])
        handover: SeatHandover | None = None
        if request.method == "POST":
            fields = await self._console.signed_in.read(session, request)
            at_most = fields.get("at_most", "")
            raw: dict[str, Any] = {"event_id": event_id, "at_most": int(at_most) if _is_number(at_most) else at_most}
            try:
                command = check(GiveSeats, raw)
            except Problem as problem:
                if problem.type is not VALIDATION_FAILED:
                    raise
                raise BAD_REQUEST("The form does not say how many seats.", hint="Open the page again.") from problem
            handover = await self._give(organizer(session), command)
        preview: HandoverPreview = await self._preview(organizer(session), GetCheckInStatus(event_id=event_id))
        status = 422 if handover and handover.status != "open" else 200
        return self._console.page(
            session,
            request,
            "check_in/seat_handover.html",
            status,
            preview=preview,
            handover=handover,
            path=check_in_path(event_id),
        )


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) < 10
