"""The pages of demo payments: where people pay, where organizers finish their account, and the books for reading."""

import re
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from holdfast.kit.contract.messages import translatable
from holdfast.kit.pages.language import Language
from holdfast.kit.pages.site import Site, redirect
from holdfast_demo.shared import serving
from holdfast_demo.shared.gallery import gallery_page
from holdfast_demo.shared.serving import language_of, to_response
from holdfast_demo.stripe import accounts, payments, refunds, sessions
from holdfast_demo.stripe.books import PLATFORM
from holdfast_demo.stripe.currencies import minor_unit_digits
from holdfast_demo.stripe.errors import StripeRefusal
from holdfast_demo.stripe.processor_state import ProcessorState
from holdfast_demo.stripe.store import StripeObject

SITE = Site("Demo payments", Path(__file__).parent)

NO_CARD = translatable("This is not the number of a card. Try 4242 4242 4242 4242.")

MAX_ROWS = 100
"""How many payments the overview shows."""

_SPACES = re.compile(r"[\s-]+")


def routes(processor: ProcessorState) -> list[BaseRoute]:
    """The pages."""
    pages = _PaymentPages(processor)
    return [
        Route("/", pages.overview),
        Route("/components", pages.components),
        Route("/pay/{id}", pages.show_session),
        Route("/pay/{id}", pages.pay, methods=["POST"]),
        Route("/connect/{id}", pages.show_link),
        Route("/connect/{id}", pages.finish, methods=["POST"]),
        *serving.asset_routes(SITE, "icon.svg", "chart.js", "copy.js"),
    ]


def money(amount: int, currency: str, language: Language) -> str:
    """An amount in the form for people, with its currency."""
    return language.money(amount, currency.upper(), minor_unit_digits(currency))


class _PaymentPages:
    def __init__(self, processor: ProcessorState) -> None:
        self._processor = processor

    async def components(self, _: Request) -> Response:
        """Every component of the pages of both services."""
        return to_response(gallery_page())

    async def show_session(self, request: Request) -> Response:
        session = self._session(request)
        if session is None:
            return _page(request, "gone.html", 404)
        return self._session_page(request, session)

    async def pay(self, request: Request) -> Response:
        session = self._session(request)
        if session is None:
            return _page(request, "gone.html", 404)
        form = await serving.form_fields(request)
        card = _SPACES.sub("", form.get("card", ""))
        if not re.fullmatch(r"[0-9]{13,19}", card):
            return self._session_page(request, session, form, NO_CARD)
        if session["status"] != "open":
            return self._session_page(request, session)
        try:
            with self._processor.store.change():
                session = payments.pay(
                    self._processor, session["id"], card, form.get("name", ""), form.get("email", "")
                )
        except StripeRefusal as refusal:
            return self._session_page(request, session, form, refusal.message)
        return to_response(redirect(_success_url(session)))

    def _session(self, request: Request) -> StripeObject | None:
        with self._processor.store.change():
            sessions.expire_due(self._processor)
        return self._processor.store.find(sessions.KIND, request.path_params["id"])

    def _session_page(
        self, request: Request, session: StripeObject, form: StripeObject | None = None, error: str = ""
    ) -> Response:
        language = language_of(request)
        status = 410 if session["status"] == "expired" else 402 if error else 200
        values = {
            "session": session,
            "items": [
                {**item, "money": money(item["amount_total"], item["currency"], language)} for item in session["_items"]
            ],
            "total": money(session["amount_total"], session["currency"], language),
            "form": {"card": "", "name": "", "email": session["customer_email"] or "", **(form or {})},
            "error": error,
            "back": _success_url(session),
        }
        return _page(request, "session.html", status, forms=_origin(session["success_url"]), **values)

    async def show_link(self, request: Request) -> Response:
        link = self._processor.store.find(accounts.LINK, request.path_params["id"])
        if link is None:
            return _page(request, "gone.html", 404)
        if link["_state"] != "new" or link["expires_at"] <= self._processor.clock.now():
            return to_response(redirect(link["_refresh_url"]))
        self._processor.store.put({**link, "_state": "seen"})
        account = accounts.find(self._processor, link["_account"])
        return _page(request, "connect.html", forms=_origin(link["_return_url"]), account=account)

    async def finish(self, request: Request) -> Response:
        link = self._processor.store.find(accounts.LINK, request.path_params["id"])
        if link is None:
            return _page(request, "gone.html", 404)
        if link["_state"] != "seen":
            return to_response(redirect(link["_refresh_url"]))
        with self._processor.store.change():
            accounts.finish(self._processor, link)
        return to_response(redirect(link["_return_url"] or self._processor.address))

    async def overview(self, request: Request) -> Response:
        store, books, language = self._processor.store, self._processor.books, language_of(request)
        people: list[StripeObject] = [
            {"id": PLATFORM, "name": SITE.texts(language).gettext("The platform"), "done": True},
            *(
                {"id": account["id"], "name": account["email"] or account["id"], "done": account["_done"]}
                for account in store.every(accounts.KIND)
            ),
        ]
        for account in people:
            account["balances"] = [
                money(amount, currency, language) for currency, amount in books.balance(account["id"]).items()
            ]
        names = {account["id"]: account["name"] for account in people}
        charges = store.every(payments.CHARGE)[: -MAX_ROWS - 1 : -1]
        rows = [
            {
                **charge,
                "money": money(charge["amount"], charge["currency"], language),
                "fee": money(charge["application_fee_amount"] or 0, charge["currency"], language),
                "back": money(charge["amount_refunded"], charge["currency"], language),
                "to": charge["transfer_data"] and names[charge["transfer_data"]["destination"]],
            }
            for charge in charges
        ]
        open = [session for session in store.every(sessions.KIND) if session["status"] == "open"]
        count = len(store.every(refunds.KIND))
        return _page(request, "overview.html", accounts=people, payments=rows, open=len(open), refunds=count)


def _success_url(session: StripeObject) -> str:
    """The address to which a payer is sent after paying."""
    return session["success_url"].replace("{CHECKOUT_SESSION_ID}", session["id"])


def _origin(url: str) -> str:
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}" if parts.netloc else ""


def _page(request: Request, template: str, status: int = 200, *, forms: str = "", **values: Any) -> Response:
    """A page in the language of the browser."""
    language = language_of(request)
    return to_response(SITE.page(f"templates/{template}", status, language=language, forms=forms, **values))
