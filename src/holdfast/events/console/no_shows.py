"""The page that gives the seats of those who have not come to those who wait. It says first who gets one."""

from typing import Any

from starlette.routing import BaseRoute

from holdfast.accounts.sessions import Session
from holdfast.events.check_in import no_shows
from holdfast.events.check_in.model import LookAtCheckIn
from holdfast.events.check_in.no_shows import Given, GiveSeats, Preview
from holdfast.events.console.check_in import check_in_path
from holdfast.events.console.frame import Console, organizer
from holdfast.events.paths import id_of
from holdfast.kit.command import check
from holdfast.kit.handler import Reply, Request
from holdfast.kit.problems import BAD_REQUEST, VALIDATION_FAILED, Problem
from holdfast.kit.runner import Runner


class NoShowsPage:
    """Answers requests for the seats of those who have not come."""

    def __init__(self, console: Console, runner: Runner) -> None:
        self._console = console
        self._preview, self._give = runner[no_shows.PREVIEW], runner[no_shows.GIVE_SEATS]

    def routes(self) -> list[BaseRoute]:
        path = f"{check_in_path('{event_id}')}/no-shows"
        return [self._console.route(path, "no_shows", self.answer, "POST")]

    async def answer(self, session: Session, request: Request) -> Reply:
        """Say who would get a seat, or give the seats away."""
        event_id = id_of(request.scope["path_params"]["event_id"])
        given: Given | None = None
        if request.method == "POST":
            fields = await self._console.door.read(session, request)
            at_most = fields.get("at_most", "")
            raw: dict[str, Any] = {"event_id": event_id, "at_most": int(at_most) if _is_number(at_most) else at_most}
            try:
                command = check(GiveSeats, raw)
            except Problem as problem:
                if problem.type is not VALIDATION_FAILED:
                    raise
                raise BAD_REQUEST("The form does not say how many seats.", hint="Open the page again.") from problem
            given = await self._give(organizer(session), command)
        preview: Preview = await self._preview(organizer(session), LookAtCheckIn(event_id=event_id))
        status = 422 if given and given.standing != "open" else 200
        return self._console.page(
            session, request, "no_shows.html", status, preview=preview, given=given, path=check_in_path(event_id)
        )


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) < 10
