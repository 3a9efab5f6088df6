"""The page that gives the seats of no-shows to the waiting list. It lists first who would get a seat."""

from typing import Any

from holdfast.accounts.sessions import Session
from holdfast.events.check_in import no_shows
from holdfast.events.check_in.model import GetCheckInStatus
from holdfast.events.check_in.no_shows import GiveSeats, NoShowsPreview, SeatHandover
from holdfast.events.console.check_in.check_in import check_in_path
from holdfast.events.console.frame import Console, organizer
from holdfast.events.paths import id_of
from holdfast.kit.contract.command import check
from holdfast.kit.contract.problems import BAD_REQUEST, VALIDATION_FAILED, Problem
from holdfast.kit.http.handler import Reply, Request
from holdfast.kit.http.index import Route
from holdfast.kit.running.runner import Runner


class NoShowsPage:
    """Answers requests for the page about the seats of no-shows."""

    def __init__(self, console: Console, runner: Runner) -> None:
        self._console = console
        self._preview, self._give = runner[no_shows.PREVIEW], runner[no_shows.GIVE_SEATS]

    def routes(self) -> list[Route]:
        path = f"{check_in_path('{event_id}')}/no-shows"
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
        preview: NoShowsPreview = await self._preview(organizer(session), GetCheckInStatus(event_id=event_id))
        status = 422 if handover and handover.status != "open" else 200
        return self._console.page(
            session,
            request,
            "check_in/no_shows.html",
            status,
            preview=preview,
            handover=handover,
            path=check_in_path(event_id),
        )


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) < 10
