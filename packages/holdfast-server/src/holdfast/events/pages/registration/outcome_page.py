"""The page that shows a visitor the status of a sent form. It reloads until the status is final.

It shows the mail address masked, and a visitor who has mistyped it can correct it for a while. It has no way to cancel:
the address may be that of another person.
"""

import random
from typing import Literal

from holdfast.accounts.addresses import usable_address
from holdfast.events.organizers.branding import photo_origin
from holdfast.events.pages.accent_styles import branding_values
from holdfast.events.pages.registration import own_registration_pages
from holdfast.events.pages.registration.form import MAX_REDISPLAYED_CHARACTERS
from holdfast.events.pages.registration.own_registration_pages import qr
from holdfast.events.paths import event_path, organizer_path
from holdfast.events.processor.currencies import digits
from holdfast.events.registrations import address_correction, links
from holdfast.events.registrations.address_correction import CorrectAddress, CorrectionResult
from holdfast.events.registrations.entrance_code import short_code
from holdfast.events.registrations.links import OUTCOME_PAGE, OWN_PAGE, Link
from holdfast.events.registrations.own_registration import GetOwnRegistration, OwnRegistration
from holdfast.events.registrations.removed_payment import GetRemovedPayment, RemovedPayment
from holdfast.events.resources import Database
from holdfast.events.site import SITE, refuse_link
from holdfast.kit.contract.caller import Caller
from holdfast.kit.contract.problems import NOT_FOUND, Problem
from holdfast.kit.http.handler import Access, Handler, Reply, Request, admit
from holdfast.kit.http.index import Route
from holdfast.kit.operations.operation import Operation, single
from holdfast.kit.operations.rate_limits import Limits
from holdfast.kit.operations.runner import Runner
from holdfast.kit.pages.forms import read_form, require_same_site
from holdfast.kit.pages.language import language_of
from holdfast.kit.pages.site import redirect

CORRECT_ADDRESS = Operation("correct_address", None, single(address_correction.correct), limit="forms")
"""Counts like a form. It has no route and no tool of its own."""

MAX_OUTCOME_AGE_SECONDS = 86_400
"""The seconds for which the page works after the form was sent, or after a move up from the waiting list, since the
payment for that seat returns to this page.
"""


def routes(database: Database, runner: Runner, limits: Limits) -> list[Route]:
    """The routes of the page."""

    def of_page(path: str, *, framed: bool) -> list[Route]:
        page = OutcomePage(database, runner, limits, framed=framed)
        correcting = Access("framed_address_correction" if framed else "address_correction")
        correct = Handler(correcting, limits, page.correct, page.refuse, methods=("GET", "HEAD", "POST"))
        return [
            Route(path, Handler(page.access, limits, page.answer, page.refuse)),
            Route(f"{path}/address", correct),
        ]

    return [
        *of_page("/registrations/{link}/outcome", framed=False),
        *of_page("/registrations/{link}/outcome/embed", framed=True),
        *SITE.assets("pages/registration/outcome.js", "pages/countdown.js"),
    ]


class OutcomePage:
    """Answers requests for the status of a registration, by itself or in a frame."""

    def __init__(self, database: Database, runner: Runner, limits: Limits, *, framed: bool) -> None:
        self._settings, self._secret = database.resources.settings, database.resources.secret
        self._get_registration = runner.run_of(own_registration_pages.READ_REGISTRATION)
        self._get_removed_payment = runner.run_of(own_registration_pages.READ_REMOVED_PAYMENT)
        self._receipts = own_registration_pages.ReceiptFiles(database, runner)
        self._correct, self._correcting = runner.run_of(CORRECT_ADDRESS), Access.of(CORRECT_ADDRESS, runner)
        self._limits = limits
        self._framed = framed
        self.access = Access("framed_outcome" if framed else "outcome")

    async def answer(self, caller: Caller, request: Request) -> Reply:
        """Show the status of the registration. Raises `not_found`."""
        link = await links.require_link(self._secret, OUTCOME_PAGE, request.fields["link"], self._limits, caller)
        return await self._show(caller, request, link)

    async def correct(self, caller: Caller, request: Request) -> Reply:
        """Give the registration to another address, and redirect to its outcome. Raises `not_found`."""
        link = await links.require_link(self._secret, OUTCOME_PAGE, request.fields["link"], self._limits, caller)
        language = language_of(request)
        if request.method != "POST":
            return redirect(language.at(self._path(link)), framed=self._framed)
        require_same_site(request, self._settings.base_url)
        email = (await read_form(request)).get("email", "")
        if usable_address(email) is None:
            return await self._show(caller, request, link, 422, correction="malformed", email=email)
        await admit(self._correcting, self._limits, caller)
        result: CorrectionResult = await self._correct(caller, CorrectAddress(**link._asdict(), email=email))
        if result.link is None:
            return await self._show(caller, request, link, 422, correction=result.status, email=email)
        return redirect(language.at(self._path(result.link)), framed=self._framed)

    def _path(self, link: Link) -> str:
        return links.outcome_path(self._secret, link, framed=self._framed)

    async def _show(
        self,
        caller: Caller,
        request: Request,
        link: Link,
        status: int = 200,
        *,
        correction: Literal["malformed", "known", "late", "corrected"] | None = None,
        email: str = "",
    ) -> Reply:
        """The page. `correction`: why the address `email` was not taken."""
        language = language_of(request)
        # The payment processor redirects here after a payment. Only its report to the service confirms the payment.
        has_paid = "paid" in SITE.read_query(request)
        try:
            registration: OwnRegistration = await self._get_registration(caller, GetOwnRegistration(**link._asdict()))
        except Problem as problem:
            if problem.type is not NOT_FOUND:
                raise
            payment: RemovedPayment | None = await self._get_removed_payment(
                caller, GetRemovedPayment(**link._asdict())
            )
            return own_registration_pages.gone_page(
                language, link.event_id, framed=self._framed, payment=payment, has_paid=has_paid
            )
        if _age(registration) > MAX_OUTCOME_AGE_SECONDS and registration.status not in ("held", "in_draw"):
            return own_registration_pages.gone_page(language, link.event_id, framed=self._framed)
        if own_registration_pages.asks_receipt(request):
            return await self._receipts.answer(caller, link)
        has_code = registration.status == "registered" and registration.cancelled_at is None
        # The short code lets in, and does not open the person's own page: the visitor may have typed another's address.
        code = str(short_code(links.write(self._secret, OWN_PAGE, link))) if has_code else None
        return SITE.page(
            "pages/registration/outcome.html",
            status,
            language=language,
            framed=self._framed,
            own=registration,
            images=photo_origin(self._settings),
            **branding_values(registration.accent, registration.logo, self._settings),
            **own_registration_pages.picture_values(registration, self._settings),
            zone=registration.timezone or "UTC",
            digits=digits(registration.currency),
            refresh=refresh_seconds(registration, has_paid=has_paid),
            has_paid=has_paid,
            code=code,
            qr=qr(code) if code else None,
            correction=correction,
            typed=email[:MAX_REDISPLAYED_CHARACTERS],
            correction_path=language.at(f"{self._path(link)}/address"),
            receipt_path=f"{self._path(link)}?{own_registration_pages.RECEIPT}",
            form_path=language.at(f"/events/{registration.event_id}/{'embed' if self._framed else 'registrations'}"),
            organizer_path=language.at(organizer_path(registration.organizer_slug)),
            event_address=language.at(event_path(registration.organizer_slug, registration.event_id)),
        )

    def refuse(self, problem: Problem, request: Request) -> Reply:
        return refuse_link(problem, request, framed=self._framed)


def _age(registration: OwnRegistration) -> float:
    """Seconds since the registration was received, or since it moved up from the waiting list."""
    return (
        (registration.now - registration.promoted_at).total_seconds() if registration.promoted_at else registration.age
    )


def refresh_seconds(registration: OwnRegistration, *, has_paid: bool = False) -> int | None:
    """Seconds after which the page reloads: more for a longer wait, and varied so that pages do not reload together.

    None if the status is final.

    has_paid    whether the visitor has just paid
    """
    if registration.status == "held":
        least, most = (4, 8) if registration.payment_url and not has_paid else (1, 2)
    elif registration.waits_for_draw:
        seconds = (registration.draw_round_at - registration.now).total_seconds() if registration.draw_round_at else 0
        least, most = (5, 10) if seconds < 5 else (int(min(seconds, 600)), int(min(seconds, 600)) + 5)
    elif registration.status == "pending":
        waits = ((5, 1, 1), (60, 2, 4))
        least, most = next(((least, most) for until, least, most in waits if registration.age < until), (5, 10))
    else:
        return None
    return random.randint(least, most)  # noqa: S311 - no secret
