"""The page on which an organizer edits the paragraphs in the mails about an event and previews these mails."""

from collections.abc import Mapping, Sequence

from holdfast.accounts.sessions import Session
from holdfast.events.console.events.event_page import EVENT_PATH
from holdfast.events.console.frame import HOME, Console, organizer
from holdfast.events.mails import paragraphs
from holdfast.events.mails.kinds import ParagraphKind, sentences_of
from holdfast.events.mails.paragraphs import PARAGRAPH_KINDS, GetMailParagraphs, MailParagraphs, UpdateMailParagraphs
from holdfast.events.mails.preview import MailPreview, preview_mails
from holdfast.events.paths import id_of
from holdfast.events.processor.currencies import digits
from holdfast.events.site import SITE
from holdfast.kit.contract.command import check
from holdfast.kit.contract.problems import BAD_REQUEST, Problem
from holdfast.kit.http.handler import Reply, Request, read_query
from holdfast.kit.http.index import Route
from holdfast.kit.operations.operation import Operation, read, single
from holdfast.kit.operations.runner import Runner
from holdfast.kit.pages.forms import form_errors
from holdfast.kit.pages.language import language_of

GET = Operation("get_mail_paragraphs", None, read(paragraphs.get))
UPDATE = Operation("update_mail_paragraphs", None, single(paragraphs.update))
OPERATIONS = (GET, UPDATE)
"""Operations of the console alone: they have no routes of the API and no tools."""


class MailParagraphsPage:
    """Answers requests for the form of the paragraphs."""

    def __init__(self, console: Console, runner: Runner) -> None:
        self._console = console
        self._get, self._update = runner.run_of(GET), runner.run_of(UPDATE)

    def routes(self) -> list[Route]:
        return [self._console.route(f"{EVENT_PATH}/mails", "mail_paragraphs", self.answer, "POST")]

    async def answer(self, session: Session, request: Request) -> Reply:
        """Show the paragraphs of an event; with POST preview a mail, or change the paragraphs."""
        event_id = id_of(request.fields["event_id"])
        fields = await self._console.signed_in.read(session, request) if request.method == "POST" else None
        paragraphs: MailParagraphs = await self._get(organizer(session), GetMailParagraphs(event_id=event_id))
        if fields is None:
            is_saved = read_query(request.query).get("done") == "saved"
            return self._form(session, request, paragraphs, paragraphs.texts, paragraphs.version, is_saved=is_saved)
        texts = {kind: _as_sent(fields.get(kind, "")) for kind in PARAGRAPH_KINDS}
        version = fields.get("version", "")
        try:
            command = check(UpdateMailParagraphs, {**texts, "event_id": event_id, "version": version})
            if "preview" in fields:
                kind = _kind_of(fields["preview"])
                mail_previews = preview_mails(kind, texts[kind], paragraphs)
                return self._form(session, request, paragraphs, texts, version, previewed=kind, previews=mail_previews)
            is_done = await self._update(organizer(session), command)
        except Problem as problem:
            if problem.status != 422:
                raise
            return self._form(session, request, paragraphs, texts, version, 422, errors=form_errors(problem.errors))
        if not is_done:
            paragraphs = await self._get(organizer(session), GetMailParagraphs(event_id=event_id))
            return self._form(session, request, paragraphs, texts, paragraphs.version, 409, by_others=True)
        return self._console.redirect(request, f"{HOME}/events/{event_id}/mails?done=saved")

    def _form(
        self,
        session: Session,
        request: Request,
        paragraphs: MailParagraphs,
        texts: Mapping[str, str],
        version: str,
        status: int = 200,
        *,
        errors: Mapping[str, Sequence[str]] | None = None,
        by_others: bool = False,
        is_saved: bool = False,
        previewed: ParagraphKind | None = None,
        previews: Sequence[MailPreview] = (),
    ) -> Reply:
        others = [
            (kind, stored_text)
            for kind in paragraphs.kinds
            if (stored_text := paragraphs.texts.get(kind, "")) != texts.get(kind, "")
        ]
        language, currency = language_of(request), paragraphs.event.currency
        translated = SITE.texts(language)
        return self._console.page(
            session,
            request,
            "mails/mail_paragraphs.html",
            status,
            event=paragraphs.event,
            own={kind: sentences_of(kind, None, translated) for kind in paragraphs.kinds},
            amount=language.money(paragraphs.event.current_price or 0, currency, digits(currency)),
            values=texts,
            version=version,
            errors=errors or {},
            by_others=by_others,
            others=others,
            differing=[kind for kind, _ in others],
            is_saved=is_saved,
            previewed=previewed,
            previews=previews,
            images=f"data: {paragraphs.images_from}".strip() if previews else "",
            styles=previews[0].style if previews else "",
        )


def _kind_of(name: str) -> ParagraphKind:
    for kind in PARAGRAPH_KINDS:
        if kind == name:
            return kind
    raise BAD_REQUEST("The form names no kind of mail.", hint="Open the page again and send its form.")


def _as_sent(text: str) -> str:
    """A text as a form sends it, but with `\\n` as line end and without outer spaces."""
    return text.replace("\r\n", "\n").replace("\r", "\n").strip()
