"""The files in a form become photos of the organizer who sends it, one after the other while they arrive.

The service takes them itself, from the form, with scripts and without: it has to look at every file anyway, wherever
photos are kept. See `docs/decisions/0042`.
"""

from collections.abc import Mapping
from hashlib import sha256
from typing import NamedTuple

from holdfast.accounts.sessions import Session
from holdfast.events.console.frame import Console, organizer
from holdfast.events.console.photo_operations import KEEP, KeepPhoto, Kept
from holdfast.events.images.model import LARGEST, MOST, MOST_IDLE
from holdfast.events.problems import QUOTA_EXCEEDED, TOO_MANY_UPLOADS
from holdfast.events.site import SITE
from holdfast.kit.handler import Request
from holdfast.kit.limits import SLOT_SECONDS, Slots
from holdfast.kit.pages.files import KIND, Bounds, File
from holdfast.kit.pages.language import Language, language_of
from holdfast.kit.problems import VALIDATION_FAILED, Problem
from holdfast.kit.runner import Runner
from holdfast.kit.said import worded

AT_ONCE = 2
"""How many forms with files of one organizer are read at once; each has at most one file in memory."""


class Photo(NamedTuple):
    """A file that was kept as a photo: the key of the photo; the name and the digest of the file."""

    key: str
    name: str
    digest: str


class Refusal(NamedTuple):
    """A file that was not kept. The reason is the end of a sentence that begins with its name."""

    name: str
    reason: str


class Sent(NamedTuple):
    """A form that was sent: its fields, and what became of its files."""

    fields: Mapping[str, str]
    kept: list[Photo]
    refused: list[Refusal]


class Uploads:
    """Reads the forms of the console that have files."""

    def __init__(self, console: Console, runner: Runner) -> None:
        self._console = console
        self._keep = runner[KEEP]
        self._slots = Slots(AT_ONCE, SLOT_SECONDS)

    async def read(self, session: Session, request: Request, room: int = MOST) -> Sent:
        """Read a form, and keep at most `room` of its files. It may also come without files, as other forms do."""
        door, kind = self._console.door, request.headers.get(b"content-type", b"")
        if not kind.lower().startswith(KIND.encode()):
            return Sent(await door.read(session, request), [], [])
        sent = Sent({}, [], [])
        language = language_of(request)

        async def take(file: File) -> None:
            texts = SITE.texts(language)
            if len(sent.kept) >= room:
                reason = too_many(language)
            elif file.content is None:
                reason = texts.gettext("is larger than 5 MB")
            elif not file.content:
                reason = texts.gettext("is empty")
            else:
                try:
                    made: Kept = await self._keep(organizer(session), KeepPhoto(content=file.content))
                except Problem as problem:
                    reason = in_words(problem, language)
                else:
                    sent.kept.append(Photo(made.key, file.name, sha256(file.content).hexdigest()))
                    return
            sent.refused.append(Refusal(file.name, reason))

        async with self._slots.of(organizer(session).tenant):
            fields = await door.read_files(session, request, Bounds(MOST, LARGEST), take)
        return sent._replace(fields=fields)


def too_many(language: Language) -> str:
    """Why a photo is not added to an event that has as many as it may have."""
    return SITE.texts(language).gettext("is one too many: an event has at most %(most)s photos") % {"most": MOST}


def in_words(problem: Problem, language: Language) -> str:
    """Why a file is not kept. Raises the problem if it does not lie in the file."""
    texts = SITE.texts(language)
    if problem.type is VALIDATION_FAILED:
        [reason] = problem.errors["content"]
        return worded(reason, texts.gettext, {}, language.number)
    if problem.type is QUOTA_EXCEEDED:
        return texts.gettext("is one too many: you have as many photos as an organizer may have")
    if problem.type is TOO_MANY_UPLOADS:
        return texts.gettext(
            "is one too many: %(most)s photos of yours are shown by no event; they are deleted after a day"
        ) % {"most": MOST_IDLE}
    raise problem
