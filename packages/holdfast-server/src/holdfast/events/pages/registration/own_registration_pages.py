"""The pages of a person's own registration, behind the link in its mails: read, confirm and give it up, stop its mails.

A GET changes nothing, since programs that check mails follow their links. The link is enough: no account is needed.
"""

from collections.abc import Awaitable, Callable
from functools import lru_cache
from typing import Any

from markupsafe import Markup

from holdfast.events.log.signed_answers import receipt_file
from holdfast.events.organizers.branding import photo_origin
from holdfast.events.pages.accent_styles import branding_values
from holdfast.events.pages.cover import cover_svg
from holdfast.events.paths import event_path, organizer_path
from holdfast.events.photos.model import image_attributes, read_sizes
from holdfast.events.processor.currencies import digits
from holdfast.events.push.encryption import sender_keys
from holdfast.events.push.routes import PUSH_WORKER_PATH
from holdfast.events.registrations import links, own_cancellations, own_receipt, own_registration, removed_payment
from holdfast.events.registrations.entrance_code import qr_code, short_code
from holdfast.events.registrations.links import OWN_PAGE, Link, require_link
from holdfast.events.registrations.model import UNDO_SECONDS
from holdfast.events.registrations.own_cancellations import (
    CancelOwnRegistration,
    GetOwnCancellation,
    OwnCancellation,
    UndoOwnCancellation,
)
from holdfast.events.registrations.own_receipt import GetOwnReceipt
from holdfast.events.registrations.own_registration import (
    ConfirmOwnRegistration,
    GetOwnRegistration,
    OwnRegistration,
    StopMails,
)
from holdfast.events.registrations.removed_payment import GetRemovedPayment, RemovedPayment
from holdfast.events.resources import Database
from holdfast.events.settings import Settings
from holdfast.events.site import SITE, refuse_link
from holdfast.events.texts.rendered_text import one_line
from holdfast.kit.contract.caller import Caller
from holdfast.kit.contract.problems import NOT_FOUND, Problem
from holdfast.kit.http.handler import Access, Handler, Reply, Request, admit
from holdfast.kit.http.index import Route
from holdfast.kit.operations.operation import Operation, read_batched, single
from holdfast.kit.operations.operation import read as read_once
from holdfast.kit.operations.rate_limits import Limits
from holdfast.kit.operations.runner import Runner
from holdfast.kit.pages.forms import FormTokens, read_form, require_same_site
from holdfast.kit.pages.language import Language, language_of
from holdfast.kit.pages.site import redirect
from holdfast_verify.formats.receipts import ReceiptFile

READ_REGISTRATION = Operation("get_own_registration", None, read_batched(own_registration.get))
"""Reads the registration that a link names. It has no route and no tool of its own."""

READ_REMOVED_PAYMENT = Operation("get_removed_payment", None, read_once(removed_payment.last_payment))
"""Reads the last payment of a registration that was removed. It has no route and no tool of its own."""


GET_RECEIPT = Operation("get_own_receipt", None, single(own_receipt.get_receipt))
"""Makes the receipt of the registration that a link names. It has no route and no tool of its own."""

UNDONE = "undone"
"""The query of a page behind a link whose cancellation the person has undone."""

RECEIPT = "receipt"
"""The query of a page behind a link that asks for the receipt of the registration as a file."""


class ReceiptFiles:
    """Answers with the signed receipts of registrations, as files."""

    def __init__(self, database: Database, runner: Runner) -> None:
        self._database, self._get = database, runner.run_of(GET_RECEIPT)

    async def answer(self, caller: Caller, link: Link) -> Reply:
        """The receipt of the registration that a link names. Raises `not_found`."""
        file: ReceiptFile = await self._get(caller, GetOwnReceipt(**link._asdict()))
        return await receipt_file(self._database, file, f"receipt-event-{link.event_id}.json")


def asks_receipt(request: Request) -> bool:
    return RECEIPT in SITE.read_query(request)


def gone_page(
    language: Language,
    event_id: int,
    status: int = 410,
    *,
    framed: bool = False,
    payment: RemovedPayment | None = None,
    has_paid: bool = False,
) -> Reply:
    """The page behind a link to a registration that was removed, or replaced by a newer one.

    payment    its last payment, from which the page explains the refund
    has_paid   whether the visitor comes from the page of the payment processor after a payment
    """
    return SITE.page(
        "pages/registration/gone.html",
        status,
        language=language,
        framed=framed,
        own=payment,
        has_paid=has_paid,
        digits=digits(payment.currency) if payment else 0,
        form_path=language.at(f"/events/{event_id}/{'embed' if framed else 'registrations'}"),
    )


GET_OWN_CANCELLATION = Operation("get_own_cancellation", None, read_once(own_cancellations.find_own_cancellation))
"""Reads what became of a registration that the person cancelled. It has no route and no tool of its own."""

CANCEL = Operation("cancel_own_registration", None, single(own_cancellations.cancel), limit="forms")
"""Counts like a form: cancelling and undoing it costs no more than registering again."""

UNDO = Operation("undo_own_cancellation", None, single(own_cancellations.undo))
CONFIRM = Operation("confirm_own", None, single(own_registration.confirm))
STOP_MAILS = Operation("stop_mails", None, single(own_registration.stop_mails))
OPERATIONS = (GET_OWN_CANCELLATION, CANCEL, UNDO, CONFIRM, STOP_MAILS)
"""The operations of the pages. They have no routes and no tools of their own."""


def routes(database: Database, runner: Runner, limits: Limits) -> list[Route]:
    """The routes of the pages of a person's own registration."""
    pages = OwnRegistrationPages(database, runner, limits)

    def page(path: str, name: str, answer: Callable[[Caller, Request], Awaitable[Reply]], *methods: str) -> Route:
        handler = Handler(Access(name), limits, answer, refuse_link, methods=("GET", "HEAD", *methods))
        return Route(path, handler)

    return [
        page("/registrations/{link}", "own_registration", pages.show),
        page("/registrations/{link}/cancel", "own_cancellation", pages.cancel, "POST"),
        page("/registrations/{link}/undo", "undoing", pages.undo, "POST"),
        page("/registrations/{link}/confirm", "own_confirmation", pages.confirm, "POST"),
        page("/registrations/{link}/unsubscribe", "unsubscribing", pages.unsubscribe, "POST"),
    ]


class OwnRegistrationPages:
    """Answers requests of people about their own registrations."""

    def __init__(self, database: Database, runner: Runner, limits: Limits) -> None:
        self._receipts = ReceiptFiles(database, runner)
        self._settings, self._secret = database.resources.settings, database.resources.secret
        self._get_registration, self._stop = runner.run_of(READ_REGISTRATION), runner.run_of(STOP_MAILS)
        self._cancel, self._undo, self._get_own_cancellation = (
            runner.run_of(CANCEL),
            runner.run_of(UNDO),
            runner.run_of(GET_OWN_CANCELLATION),
        )
        self._cancelling = Access.of(CANCEL, runner)
        self._push_key = sender_keys(self._secret)[0].public_key
        self._confirm = runner.run_of(CONFIRM)
        self._get_removed_payment = runner.run_of(READ_REMOVED_PAYMENT)
        self._limits = limits
        self._tokens = FormTokens(self._secret.signer("own registration forms"))

    async def show(self, caller: Caller, request: Request) -> Reply:
        """Show a registration, or give its receipt as a file."""
        link, language = await self._read_link(caller, request), language_of(request)
        if asks_receipt(request):
            return await self._receipts.answer(caller, link)
        return await self._registration_page(caller, link, language, is_undone=UNDONE in SITE.read_query(request))

    async def cancel(self, caller: Caller, request: Request) -> Reply:
        """Ask whether to cancel a registration, and say what happens then; with POST do it, with time to undo it."""
        link, language = await self._read_link(caller, request), language_of(request)
        if request.method != "POST":
            return await self._ask_to_cancel(caller, link, language)
        require_same_site(request, self._settings.base_url)
        fields = await read_form(request)
        if self._tokens.check(self._path(link), fields.get("token", "")) != "good":
            return await self._ask_to_cancel(caller, link, language, 422)
        await admit(self._cancelling, self._limits, caller)
        try:
            is_cancelled: bool = await self._cancel(caller, CancelOwnRegistration(**link._asdict()))
        except Problem as problem:
            return await self._gone_page(caller, link, problem, language)
        if not is_cancelled:
            return await self._registration_page(caller, link, language, 422, is_late=True)
        return redirect(language.at(self._path(link)))

    async def undo(self, caller: Caller, request: Request) -> Reply:
        """Undo that a registration is cancelled. The page then says so, or who has the seat if it was too late."""
        link, language = await self._read_link(caller, request), language_of(request)
        path = self._path(link)
        if request.method != "POST":
            return redirect(language.at(path))
        require_same_site(request, self._settings.base_url)
        try:
            registration: OwnRegistration = await self._get_registration(caller, GetOwnRegistration(**link._asdict()))
            if registration.cancels_at is not None:
                await self._undo(caller, UndoOwnCancellation(**link._asdict()))
        except Problem as problem:
            return await self._gone_page(caller, link, problem, language)
        return redirect(language.at(f"{path}?{UNDONE}"))

    async def confirm(self, caller: Caller, request: Request) -> Reply:
        """Confirm the entry of a draw, if its own page asks for it. The link is proof of the address."""
        link, language = await self._read_link(caller, request), language_of(request)
        if request.method == "POST":
            require_same_site(request, self._settings.base_url)
            try:
                await self._confirm(caller, ConfirmOwnRegistration(**link._asdict()))
            except Problem as problem:
                return await self._gone_page(caller, link, problem, language)
        return redirect(language.at(self._path(link)))

    async def unsubscribe(self, caller: Caller, request: Request) -> Reply:
        """Show the question whether to stop the mails about a registration; with POST stop them.

        A mail program may send the POST by itself (RFC 8058) without a token: the link is proof enough.
        """
        link, language = await self._read_link(caller, request), language_of(request)
        stopped = request.method == "POST"
        if stopped:
            await self._stop(caller, StopMails(**link._asdict()))
        try:
            registration: OwnRegistration = await self._get_registration(caller, GetOwnRegistration(**link._asdict()))
        except Problem as problem:
            return await self._gone_page(caller, link, problem, language, 200 if stopped else 410)
        values = self._values(registration, language)
        return SITE.page(
            "pages/registration/unsubscribe.html", language=language, path=language.at(self._path(link)), **values
        )

    async def _read_link(self, caller: Caller, request: Request) -> Link:
        return await require_link(self._secret, OWN_PAGE, request.fields["link"], self._limits, caller)

    def _path(self, link: Link) -> str:
        return f"{links.REGISTRATIONS_PATH}/{links.write(self._secret, OWN_PAGE, link)}"

    async def _registration_page(
        self,
        caller: Caller,
        link: Link,
        language: Language,
        status: int = 200,
        *,
        is_late: bool = False,
        is_undone: bool = False,
    ) -> Reply:
        """The page; `is_late`: it was too late to give it up; `is_undone`: that was undone just now."""
        try:
            registration: OwnRegistration = await self._get_registration(caller, GetOwnRegistration(**link._asdict()))
        except Problem as problem:
            return await self._gone_page(caller, link, problem, language)
        path = self._path(link)
        has_code = registration.status == "registered"
        return SITE.page(
            "pages/registration/own.html",
            status,
            language=language,
            is_late=is_late,
            is_undone=is_undone,
            qr=qr(links.own_url(self._settings, self._secret, *link)) if has_code else None,
            typed=short_code(links.write(self._secret, OWN_PAGE, link)) if has_code else None,
            cancel_path=language.at(f"{path}/cancel"),
            undo_path=language.at(f"{path}/undo"),
            push_path=language.at(f"{path}/push"),
            push_key=self._push_key,
            push_worker=PUSH_WORKER_PATH,
            confirm_path=language.at(f"{path}/confirm"),
            receipt_path=f"{path}?{RECEIPT}",
            unsubscribe_path=language.at(f"{path}/unsubscribe"),
            data_path=language.at(f"{path}/data"),
            has_paid=False,  # after a payment the visitor returns to another page
            **picture_values(registration, self._settings),
            **self._values(registration, language),
        )

    async def _ask_to_cancel(self, caller: Caller, link: Link, language: Language, status: int = 200) -> Reply:
        """The question; with the status 422 once more, since its form was shown too long ago."""
        try:
            registration: OwnRegistration = await self._get_registration(caller, GetOwnRegistration(**link._asdict()))
        except Problem as problem:
            return await self._gone_page(caller, link, problem, language)
        path = self._path(link)
        if not registration.can_be_cancelled or registration.cancels_at is not None:
            return redirect(language.at(path))
        return SITE.page(
            "pages/registration/cancel.html",
            status,
            language=language,
            is_old=status != 200,
            path=language.at(path),
            cancel_path=language.at(f"{path}/cancel"),
            token=self._tokens.issue(path),
            **self._values(registration, language),
        )

    async def _gone_page(
        self, caller: Caller, link: Link, problem: Problem, language: Language, status: int = 410
    ) -> Reply:
        """The page for a registration that no longer exists, with its refund. Raises other problems."""
        if problem.type is not NOT_FOUND:
            raise problem
        payment: RemovedPayment | None = await self._get_removed_payment(caller, GetRemovedPayment(**link._asdict()))
        cancellation: OwnCancellation | None = await self._get_own_cancellation(
            caller, GetOwnCancellation(**link._asdict())
        )
        if cancellation:
            return SITE.page(
                "pages/registration/own_cancellation.html",
                status,
                language=language,
                cancellation=cancellation,
                own=payment,
                digits=digits(payment.currency) if payment else 0,
                images=photo_origin(self._settings),
                **branding_values(cancellation.accent, cancellation.logo, self._settings),
                event_path=language.at(event_path(cancellation.organizer_slug, cancellation.event_id)),
                organizer_path=language.at(organizer_path(cancellation.organizer_slug)),
                form_path=language.at(f"/events/{cancellation.event_id}/registrations"),
            )
        return gone_page(language, link.event_id, status, payment=payment)

    def _values(self, registration: OwnRegistration, language: Language) -> dict[str, Any]:
        """The values that the templates share."""
        return {
            "own": registration,
            "undo_seconds": UNDO_SECONDS,
            **branding_values(registration.accent, registration.logo, self._settings),
            "images": photo_origin(self._settings),
            "zone": registration.timezone or "UTC",
            "digits": digits(registration.currency),
            "organizer_path": language.at(organizer_path(registration.organizer_slug)),
            "event_path": language.at(event_path(registration.organizer_slug, registration.event_id)),
            "form_path": language.at(f"/events/{registration.event_id}/registrations"),
            "calendar_path": language.at(f"/events/{registration.event_id}/calendar.ics"),
        }


def picture_values(registration: OwnRegistration, settings: Settings) -> dict[str, Any]:
    """The picture at the top of a page of a registration: the first photo of the event, or else the drawn cover."""
    key, sizes = registration.photo, read_sizes(registration.photo_sizes)
    return {
        "photo": image_attributes(key, sizes, settings) if key else None,
        "cover": cover_svg(one_line(registration.title)),
    }


@lru_cache(1_000)
def qr(text: str) -> Markup:
    """The QR code of a registration for a page. It is dark on light in every colour scheme: scanners need that.

    Drawing takes milliseconds of CPU time, so the result is cached.
    """
    drawn = qr_code(text)
    return Markup(drawn.svg_inline(border=4, dark="#000", light="#fff", svgclass="qr", lineclass=None, omitsize=True))  # noqa: S704 - only the code
