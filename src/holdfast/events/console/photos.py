"""The page of the photos of an event: add files, or one from the web; put one first, take one off."""

from collections.abc import Mapping, Sequence
from typing import Any

from starlette.routing import BaseRoute

from holdfast.accounts.sessions import Session
from holdfast.events.console.event import PATH
from holdfast.events.console.event_operations import LOOK, Seen
from holdfast.events.console.frame import HOME, Console, organizer
from holdfast.events.console.uploads import Refusal, Sent, Uploads, too_many
from holdfast.events.events.model import GetEvent
from holdfast.events.images.model import MOST
from holdfast.events.paths import id_of
from holdfast.events.photos.model import AddPhoto, RemovePhoto, SetPrimaryPhoto
from holdfast.events.problems import TOO_MANY_PHOTOS
from holdfast.events.site import SITE
from holdfast.kit.command import check
from holdfast.kit.handler import Reply, Request
from holdfast.kit.pages import once as form_once
from holdfast.kit.pages.language import language_of
from holdfast.kit.problems import BAD_REQUEST, IDEMPOTENCY_KEY_REUSED, Problem
from holdfast.kit.runner import Runner

NOTHING: Mapping[str, Any] = {}


class PhotosPage:
    """Answers requests for the page of the photos of an event."""

    def __init__(self, console: Console, runner: Runner, uploads: Uploads) -> None:
        self._console = console
        self._uploads = uploads
        self._look = runner[LOOK]

    def routes(self) -> list[BaseRoute]:
        return [
            self._console.route(f"{PATH}/photos", "event_photos", self.answer, "POST"),
            *SITE.assets("console/upload.js"),
        ]

    async def answer(self, session: Session, request: Request) -> Reply:
        """Show the photos of an event, or change them."""
        event_id = id_of(request.scope["path_params"]["event_id"])
        if request.method != "POST":
            return await self._page(session, request, event_id)
        seen: Seen = await self._look(organizer(session), GetEvent(event_id=event_id))
        sent = await self._uploads.read(session, request, MOST - len(seen.event.image_keys))
        if sent.fields.get("do") == "upload":
            return await self._upload(session, request, event_id, sent)
        try:
            await self._change(session, event_id, sent.fields)
        except Problem as problem:
            if problem.status != 422:
                raise
            # Whatever is wrong is said beside the only field.
            errors = {"url": [message for messages in problem.errors.values() for message in messages]}
            return await self._page(session, request, event_id, 422, values=sent.fields, errors=errors)
        return self._console.to(request, f"{HOME}/events/{event_id}/photos")

    async def _upload(self, session: Session, request: Request, event_id: int, sent: Sent) -> Reply:
        """Add the files that were kept, each once also if the form is sent twice."""
        language = language_of(request)
        add, caller, once = self._console.run["add_event_photo"], organizer(session), sent.fields.get("once")
        refused = [*sent.refused]
        for photo in sent.kept:
            command = AddPhoto(event_id=event_id, key=photo.key)
            try:
                await add(caller, command, f"{once}-{photo.digest}" if once else None)
            except Problem as problem:
                if problem.type is TOO_MANY_PHOTOS:
                    refused.append(Refusal(photo.name, too_many(language)))
                elif problem.type is not IDEMPOTENCY_KEY_REUSED:
                    raise
        if refused:
            return await self._page(session, request, event_id, 422, refused=refused)
        if not sent.kept:
            chosen = SITE.texts(language).gettext("Choose at least one photo.")
            return await self._page(session, request, event_id, 422, errors={"files": [chosen]})
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
        status: int = 200,
        *,
        values: Mapping[str, str] = NOTHING,
        errors: Mapping[str, Sequence[str]] = NOTHING,
        refused: Sequence[Refusal] = (),
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
            refused=refused,
            once=form_once.new(),
            images=seen.images_from,
        )
