"""The page of the photos of an event: add one from the web, put one first, take one off."""

from collections.abc import Mapping, Sequence

from starlette.routing import BaseRoute

from holdfast.accounts.sessions import Session
from holdfast.events.console.event import PATH
from holdfast.events.console.event_operations import LOOK, Seen
from holdfast.events.console.frame import HOME, Console, organizer
from holdfast.events.events.model import GetEvent
from holdfast.events.paths import id_of
from holdfast.events.photos.model import AddPhoto, RemovePhoto, SetPrimaryPhoto
from holdfast.kit.command import check
from holdfast.kit.handler import Reply, Request
from holdfast.kit.problems import BAD_REQUEST, Problem
from holdfast.kit.runner import Runner


class PhotosPage:
    """Answers requests for the page of the photos of an event."""

    def __init__(self, console: Console, runner: Runner) -> None:
        self._console = console
        self._look = runner[LOOK]

    def routes(self) -> list[BaseRoute]:
        return [self._console.route(f"{PATH}/photos", "event_photos", self.answer, "POST")]

    async def answer(self, session: Session, request: Request) -> Reply:
        """Show the photos of an event, or change them."""
        event_id = id_of(request.scope["path_params"]["event_id"])
        if request.method != "POST":
            return await self._page(session, request, event_id, {}, {})
        fields = await self._console.door.read(session, request)
        try:
            await self._change(session, event_id, fields)
        except Problem as problem:
            if problem.status != 422:
                raise
            told: Mapping[str, Sequence[str]] = problem.extra.get("errors", {})
            errors = told if "url" in told else {"url": [problem.message]}
            return await self._page(session, request, event_id, fields, errors, 422)
        return self._console.to(request, f"{HOME}/events/{event_id}/photos")

    async def _change(self, session: Session, event_id: int, fields: Mapping[str, str]) -> None:
        """Do what the button says that was pressed."""
        run, caller = self._console.run, organizer(session)
        key = {"event_id": event_id, "key": fields.get("key", "")}
        match fields.get("do"):
            case "add":
                await run["add_event_photo"](caller, check(AddPhoto, {"event_id": event_id, "url": fields.get("url")}))
            case "first":
                await run["set_primary_photo"](caller, check(SetPrimaryPhoto, key))
            case "remove":
                await run["remove_event_photo"](caller, check(RemovePhoto, key))
            case _:
                raise BAD_REQUEST("The form says nothing that can be done.", hint="Open the page again.")

    async def _page(
        self,
        session: Session,
        request: Request,
        event_id: int,
        values: Mapping[str, str],
        errors: Mapping[str, Sequence[str]],
        status: int = 200,
    ) -> Reply:
        seen: Seen = await self._look(organizer(session), GetEvent(event_id=event_id))
        return self._console.page(
            session,
            request,
            "photos.html",
            status,
            event=seen.event,
            photos=[*zip(seen.event.image_keys, seen.photos, strict=True)],
            values=values,
            errors=errors,
            images=seen.images_from,
        )
