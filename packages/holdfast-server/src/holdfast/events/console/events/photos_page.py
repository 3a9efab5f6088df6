"""The page of the photos of an event: upload, add a photo by its URL, set the primary one, remove it, undo that."""

from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import urlencode

from holdfast.accounts.sessions import Session
from holdfast.events.console.events.event_page import EVENT_PATH
from holdfast.events.console.events.uploads import FileRefusal, UploadForm, Uploads, too_many_photos
from holdfast.events.console.frame import HOME, Console, organizer
from holdfast.events.events.event_photos import AddPhoto, RemovePhoto, SetPrimaryPhoto
from holdfast.events.events.model import GetEvent
from holdfast.events.events.overview import READ_EVENT, EventDetails
from holdfast.events.pages.cover import cover_svg
from holdfast.events.paths import id_of
from holdfast.events.photos.model import MAX_PHOTOS
from holdfast.events.problems import TOO_MANY_PHOTOS
from holdfast.events.site import SITE
from holdfast.events.texts.rendered_text import one_line
from holdfast.kit.contract.command import check
from holdfast.kit.contract.messages import message
from holdfast.kit.contract.problems import BAD_REQUEST, IDEMPOTENCY_KEY_REUSED, Problem
from holdfast.kit.http.handler import Reply, Request
from holdfast.kit.http.index import Route
from holdfast.kit.operations.runner import Runner
from holdfast.kit.pages import forms as form_once
from holdfast.kit.pages.forms import form_errors
from holdfast.kit.pages.language import language_of

NOTHING: Mapping[str, Any] = {}

INSTRUCTION = message("Enter the address of a photo, such as https://example.com/photo.jpg.")
"""What people enter in the field of the form."""


class PhotosPage:
    """Answers requests for the page of the photos of an event."""

    def __init__(self, console: Console, runner: Runner, uploads: Uploads) -> None:
        self._console = console
        self._uploads = uploads
        self._get_event = runner.run_of(READ_EVENT)

    def routes(self) -> list[Route]:
        return [
            self._console.route(f"{EVENT_PATH}/photos", "event_photos", self.answer, "POST"),
            *SITE.assets("console/events/upload.js"),
        ]

    async def answer(self, session: Session, request: Request) -> Reply:
        """Show the photos of an event; with POST change them."""
        event_id = id_of(request.fields["event_id"])
        if request.method != "POST":
            return await self._page(session, request, event_id)
        details: EventDetails = await self._get_event(organizer(session), GetEvent(event_id=event_id))
        form = await self._uploads.read(session, request, MAX_PHOTOS - len(details.event.image_keys))
        if form.fields.get("do") == "upload":
            return await self._upload(session, request, event_id, form)
        try:
            await self._change(session, event_id, form.fields)
        except Problem as problem:
            if problem.status != 422:
                raise
            # The form has one field, so all messages are shown beside it.
            messages = form_errors(problem.errors, {"url": INSTRUCTION, "key": INSTRUCTION}).values()
            errors = {"url": [error for field_errors in messages for error in field_errors]}
            return await self._page(session, request, event_id, 422, values=form.fields, errors=errors)
        return self._console.redirect(request, f"{HOME}/events/{event_id}/photos{_removal(details, form.fields)}")

    async def _upload(self, session: Session, request: Request, event_id: int, form: UploadForm) -> Reply:
        """Add the stored photos to the event, each once even if the form is sent twice."""
        language = language_of(request)
        add, caller, once = self._console.run["add_event_photo"], organizer(session), form.fields.get("once")
        refused = [*form.refused]
        for photo in form.photos:
            command = AddPhoto(event_id=event_id, key=photo.key)
            try:
                await add(caller, command, f"{once}-{photo.digest}" if once else None)
            except Problem as problem:
                if problem.type is TOO_MANY_PHOTOS:
                    refused.append(FileRefusal(photo.name, too_many_photos(language)))
                elif problem.type is not IDEMPOTENCY_KEY_REUSED:
                    raise
        if refused:
            return await self._page(session, request, event_id, 422, refused=refused)
        if not form.photos:
            chosen = SITE.texts(language).gettext("Choose at least one photo.")
            return await self._page(session, request, event_id, 422, errors={"files": [chosen]})
        return self._console.redirect(request, f"{HOME}/events/{event_id}/photos")

    async def _change(self, session: Session, event_id: int, fields: Mapping[str, str]) -> None:
        """Run the operation of the pressed button."""
        run, caller = self._console.run, organizer(session)
        key = {"event_id": event_id, "key": fields.get("key", "")}
        match fields.get("do"):
            case "add":
                await run["add_event_photo"](caller, check(AddPhoto, {"event_id": event_id, "url": fields.get("url")}))
            case "first":
                await run["set_primary_photo"](caller, check(SetPrimaryPhoto, key))
            case "remove":
                await run["remove_event_photo"](caller, check(RemovePhoto, key))
            case "restore" | "restore first":
                await run["add_event_photo"](caller, check(AddPhoto, key))
                if fields["do"] == "restore first":
                    await run["set_primary_photo"](caller, check(SetPrimaryPhoto, key))
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
        refused: Sequence[FileRefusal] = (),
    ) -> Reply:
        details: EventDetails = await self._get_event(organizer(session), GetEvent(event_id=event_id))
        query = SITE.read_query(request)
        removed_key = query.get("done")
        return self._console.page(
            session,
            request,
            "events/photos.html",
            status,
            event=details.event,
            photos=[*zip(details.event.image_keys, details.photos, strict=True)],
            cover=cover_svg(one_line(details.event.title)),
            removed_key=removed_key if removed_key not in details.event.image_keys else None,
            was_first=query.get("state") == "first",
            values=values,
            errors=errors,
            refused=refused,
            once=form_once.new_token(),
            images=details.images_from,
        )


def _removal(details: EventDetails, fields: Mapping[str, str]) -> str:
    """The query of the page after a photo was removed, which then offers to put it back; empty after other changes."""
    if fields.get("do") != "remove":
        return ""
    place = {"state": "first"} if details.event.image_keys[:1] == [fields.get("key")] else {}
    return f"?{urlencode({'done': fields.get('key', ''), **place})}"
