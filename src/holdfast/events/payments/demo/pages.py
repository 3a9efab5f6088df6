"""The pages of demo payments: where people pay, where organizers finish their account, and the books for reading."""

import re
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from holdfast.events.payments.demo import accounts, payments, refunds, sessions
from holdfast.events.payments.demo.books import PLATFORM
from holdfast.events.payments.demo.currencies import digits
from holdfast.events.payments.demo.errors import Refusal
from holdfast.events.payments.demo.store import Thing
from holdfast.events.payments.demo.world import World
from holdfast.kit.doubles import serving
from holdfast.kit.doubles.serving import sent
from holdfast.kit.pages.language import ENGLISH
from holdfast.kit.pages.site import Site, redirect

SITE = Site("Demo payments", Path(__file__).parent)

MOST_ROWS = 100
"""How many payments the books show."""

_SPACES = re.compile(r"[\s-]+")


def routes(world: World) -> list[BaseRoute]:
    """The pages."""
    pages = _Pages(world)
    return [
        Route("/", pages.overview),
        Route("/pay/{id}", pages.show_session),
        Route("/pay/{id}", pages.pay, methods=["POST"]),
        Route("/connect/{id}", pages.show_link),
        Route("/connect/{id}", pages.finish, methods=["POST"]),
        *SITE.assets("icon.svg"),
    ]


def money(amount: int, currency: str) -> str:
    """An amount as people write it, with its currency."""
    return ENGLISH.money(amount, currency.upper(), digits(currency))


class _Pages:
    def __init__(self, world: World) -> None:
        self._world = world

    async def show_session(self, request: Request) -> Response:
        session = self._session(request)
        if session is None:
            return _page("gone.html", 404)
        return self._shown(session)

    async def pay(self, request: Request) -> Response:
        session = self._session(request)
        if session is None:
            return _page("gone.html", 404)
        form = await serving.form(request)
        card = _SPACES.sub("", form.get("card", ""))
        if not re.fullmatch(r"[0-9]{13,19}", card):
            return self._shown(session, form, "This is not the number of a card. Try 4242 4242 4242 4242.")
        if session["status"] != "open":
            return self._shown(session)
        try:
            with self._world.store.change():
                session = payments.pay(self._world, session["id"], card, form.get("name", ""), form.get("email", ""))
        except Refusal as refusal:
            return self._shown(session, form, refusal.message)
        return sent(redirect(_back(session)))

    def _session(self, request: Request) -> Thing | None:
        with self._world.store.change():
            sessions.expire_due(self._world)
        return self._world.store.find(sessions.KIND, request.path_params["id"])

    def _shown(self, session: Thing, form: Thing | None = None, error: str = "") -> Response:
        status = 410 if session["status"] == "expired" else 402 if error else 200
        values = {
            "session": session,
            "items": [{**each, "money": money(each["amount_total"], each["currency"])} for each in session["_items"]],
            "total": money(session["amount_total"], session["currency"]),
            "form": {"card": "", "name": "", "email": session["customer_email"] or "", **(form or {})},
            "error": error,
            "back": _back(session),
        }
        return _page("session.html", status, forms=_origin(session["success_url"]), **values)

    async def show_link(self, request: Request) -> Response:
        link = self._world.store.find(accounts.LINK, request.path_params["id"])
        if link is None:
            return _page("gone.html", 404)
        if link["_state"] != "new" or link["expires_at"] <= self._world.clock.now():
            return sent(redirect(link["_refresh_url"]))
        self._world.store.put({**link, "_state": "seen"})
        account = accounts.find(self._world, link["_account"])
        return _page("connect.html", forms=_origin(link["_return_url"]), account=account)

    async def finish(self, request: Request) -> Response:
        link = self._world.store.find(accounts.LINK, request.path_params["id"])
        if link is None:
            return _page("gone.html", 404)
        if link["_state"] != "seen":
            return sent(redirect(link["_refresh_url"]))
        with self._world.store.change():
            accounts.finish(self._world, link)
        return sent(redirect(link["_return_url"] or self._world.address))

    async def overview(self, _: Request) -> Response:
        store, books = self._world.store, self._world.books
        people: list[Thing] = [
            {"id": PLATFORM, "name": "The platform", "done": True},
            *(
                {"id": each["id"], "name": each["email"] or each["id"], "done": each["_done"]}
                for each in store.every(accounts.KIND)
            ),
        ]
        for each in people:
            each["balances"] = [money(amount, currency) for currency, amount in books.balance(each["id"]).items()]
        names = {each["id"]: each["name"] for each in people}
        charges = store.every(payments.CHARGE)[: -MOST_ROWS - 1 : -1]
        rows = [
            {
                **each,
                "money": money(each["amount"], each["currency"]),
                "fee": money(each["application_fee_amount"] or 0, each["currency"]),
                "back": money(each["amount_refunded"], each["currency"]),
                "to": each["transfer_data"] and names[each["transfer_data"]["destination"]],
            }
            for each in charges
        ]
        open = [each for each in store.every(sessions.KIND) if each["status"] == "open"]
        count = len(store.every(refunds.KIND))
        return _page("overview.html", accounts=people, payments=rows, open=len(open), refunds=count)


def _back(session: Thing) -> str:
    """Where people go once they have paid."""
    return session["success_url"].replace("{CHECKOUT_SESSION_ID}", session["id"])


def _origin(url: str) -> str:
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}" if parts.netloc else ""


def _page(template: str, status: int = 200, *, forms: str = "", **values: Any) -> Response:
    return sent(SITE.page(f"templates/{template}", status, forms=forms, **values))
