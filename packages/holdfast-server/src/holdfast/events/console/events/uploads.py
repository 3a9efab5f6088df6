"""Stores the files of a form as photos of the organizer who sends it, one after the other while they arrive.

The form sends its files to this service, with and without scripts, since the service has to check every file anyway,
wherever photos are stored. See decision 42.
"""

import math
from collections.abc import Mapping
from hashlib import sha256
from typing import NamedTuple

from holdfast.accounts.sessions import Session
from holdfast.events.console.frame import Console, organizer
from holdfast.events.photos.model import (
    MAX_IDLE_PHOTOS,
    MAX_PHOTO_BYTES,
    MAX_PHOTOS,
)
from holdfast.events.photos.operations import STORE_PHOTO, StoredPhoto, StorePhoto
from holdfast.events.photos.unproved_quotas import CONFIRM_HINT
from holdfast.events.problems import QUOTA_EXCEEDED, TOO_MANY_UPLOADS
from holdfast.events.site import SITE
from holdfast.kit.contract.bounds import bound_without_strangers
from holdfast.kit.contract.messages import message_text
from holdfast.kit.contract.problems import RATE_LIMITED, VALIDATION_FAILED, Problem
from holdfast.kit.http.handler import Request
from holdfast.kit.operations.runner import Runner
from holdfast.kit.operations.slots import MAX_WAITING, SLOT_TIMEOUT_SECONDS, Slots
from holdfast.kit.pages.form_files import MULTIPART_TYPE, FileLimits, UploadedFile
from holdfast.kit.pages.language import Language, language_of

MAX_CONCURRENT_FORMS = 2
"""The most forms with files of one organizer that are read at a time; each has at most one file in memory."""

FORMS_WITH_FILES = bound_without_strangers(
    name="Forms with files that are read",
    service="events",
    total="none",
    tenant=f"{MAX_CONCURRENT_FORMS}; {MAX_WAITING} wait",
)


class UploadedPhoto(NamedTuple):
    """A file that was stored as a photo: the key of the photo, the name and the digest of the file."""

    key: str
    name: str
    digest: str


class FileRefusal(NamedTuple):
    """A file that was refused. `reason` ends the sentence that begins with the name of the file."""

    name: str
    reason: str


class UploadForm(NamedTuple):
    """A sent form: its fields, its stored photos (`kept`) and its refused files."""

    fields: Mapping[str, str]
    photos: list[UploadedPhoto]
    refused: list[FileRefusal]


class Uploads:
    """Reads the forms of the console that have files."""

    def __init__(self, console: Console, runner: Runner) -> None:
        self._console = console
        self._keep = runner.run_of(STORE_PHOTO)
        self._slots = Slots(FORMS_WITH_FILES, MAX_CONCURRENT_FORMS, timeout=SLOT_TIMEOUT_SECONDS)

    async def read(self, session: Session, request: Request, max_photos: int = MAX_PHOTOS) -> UploadForm:
        """Read a form, and store at most `max_photos` of its files. Forms without files are accepted too."""
        signed_in, kind = self._console.signed_in, request.headers.get(b"content-type", b"")
        if not kind.lower().startswith(MULTIPART_TYPE.encode()):
            return UploadForm(await signed_in.read(session, request), [], [])
        form = UploadForm({}, [], [])
        language = language_of(request)

        async def take(file: UploadedFile) -> None:
            texts = SITE.texts(language)
            if len(form.photos) >= max_photos:
                reason = too_many_photos(language)
            elif file.content is None:
                reason = texts.gettext("is larger than 5 MB")
            elif not file.content:
                reason = texts.gettext("is empty")
            else:
                try:
                    photo: StoredPhoto = await self._keep(organizer(session), StorePhoto(content=file.content))
                except Problem as problem:
                    reason = _reason_of(problem, language)
                else:
                    form.photos.append(UploadedPhoto(photo.key, file.name, sha256(file.content).hexdigest()))
                    return
            form.refused.append(FileRefusal(file.name, reason))

        async with self._slots.slot_of(session.person.owner):
            fields = await signed_in.read_files(session, request, FileLimits(MAX_PHOTOS, MAX_PHOTO_BYTES), take)
        return form._replace(fields=fields)


def too_many_photos(language: Language) -> str:
    """The reason for a file that exceeds the limit of photos of an event."""
    return SITE.texts(language).gettext("is one too many: an event has at most %(most)s photos") % {"most": MAX_PHOTOS}


def _reason_of(problem: Problem, language: Language) -> str:
    """The reason why a file is refused. Raises the problem if the file is not its cause."""
    texts = SITE.texts(language)
    if problem.type is VALIDATION_FAILED:
        [reason] = problem.errors["content"]
        return message_text(reason, texts.gettext, {}, language.number)
    if problem.type is QUOTA_EXCEEDED:
        return texts.gettext("is one too many: you have as many photos as an organizer may have")
    if problem.type is TOO_MANY_UPLOADS and problem.hint == CONFIRM_HINT:
        return texts.gettext("is one too many: confirm your e-mail address, then you can upload more photos")
    if problem.type is TOO_MANY_UPLOADS:
        return texts.gettext(
            "is one too many: %(most)s photos of yours are shown by no event; they are deleted after a day"
        ) % {"most": MAX_IDLE_PHOTOS}
    if problem.type is RATE_LIMITED:
        minutes = math.ceil((problem.retry_after or 1) / 60)
        return texts.ngettext(
            "cannot be checked now: your photos have taken long to check. Try again in %(minutes)s minute.",
            "cannot be checked now: your photos have taken long to check. Try again in %(minutes)s minutes.",
            minutes,
        ) % {"minutes": minutes}
    raise problem
