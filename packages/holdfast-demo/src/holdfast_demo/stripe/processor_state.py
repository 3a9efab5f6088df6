"""The state that every part of the processor uses: the objects, the books, the time, and events about changes."""

import datetime as dt
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, Union, get_args, get_origin

from holdfast_demo.shared.store import Clock
from holdfast_demo.stripe.books import Books
from holdfast_demo.stripe.store import Store, StripeObject, new_id

VERSION = "2026-10-28.endive"

PLATFORM_ID = "acct_demoplatform"
"""The account of the operator of Holdfast."""

LINK_SECONDS = 300
"""The lifetime of a link for onboarding."""


class ProcessorState:
    """The state of one processor.

    address    the address of its pages for browsers
    key        the secret key of the platform
    """

    def __init__(self, store: Store, address: str, key: str) -> None:
        self.store = store
        self.books = Books(store)
        self.clock = Clock()
        self.address = address
        self.key = key
        self.accounts_v2 = True
        self.refunds_settle = True
        self.request: StripeObject | None = None
        self.on_event: list[Callable[[StripeObject], None]] = []
        self.on_deadline: list[Callable[[], None]] = []

    def store_event(self, type: str, thing: StripeObject, account: str = "") -> None:
        """Store an event of the first API, which contains the object as it is now.

        account    the connected account that it is about; empty: the platform
        """
        event: StripeObject = {
            "id": new_id("evt"),
            "object": "event",
            "api_version": VERSION,
            "created": self.clock.now(),
            "data": {"object": without_private(thing)},
            "livemode": False,
            "pending_webhooks": 1,
            "request": self.request or {"id": None, "idempotency_key": None},
            "type": type,
        }
        self._store_and_notify({**event, "account": account} if account else event)

    def store_thin_event(self, type: str, account: str, data: Mapping[str, Any], related: bool = True) -> None:
        """Store a thin event of the second API: it names an account; only a request for the event returns `data`."""
        event: StripeObject = {
            "id": new_id("evt_test"),
            "object": "v2.core.event",
            "type": type,
            "created": self.clock.now(),
            "livemode": False,
            "context": None,
            "reason": None,
            "_data": dict(data),
        }
        if self.request and self.request["idempotency_key"]:
            event["reason"] = {"type": "request", "request": self.request}
        if related:
            url = f"/v2/core/accounts/{account}"
            event["related_object"] = {"id": account, "type": "v2.core.account", "url": url}
        self._store_and_notify(event)

    def _store_and_notify(self, event: StripeObject) -> None:
        self.store.put(event)
        for listener in self.on_event:
            listener(event)

    def notify_deadline(self) -> None:
        """Notify the listeners that an object has a new end time."""
        for listener in self.on_deadline:
            listener()


def without_private(value: Any) -> Any:
    """A value without its private members."""
    if isinstance(value, dict):
        return {name: without_private(item) for name, item in value.items() if not name.startswith("_")}  # pyright: ignore[reportUnknownVariableType, reportUnknownMemberType]
    if isinstance(value, list):
        return [without_private(item) for item in value]  # pyright: ignore[reportUnknownVariableType]
    return value


def with_nulls(kind: type, thing: StripeObject) -> StripeObject:
    """An object with null for every missing member of its stripe-python class."""
    return {**dict.fromkeys(_nullable(kind)), **thing}


@cache
def _nullable(kind: type) -> tuple[str, ...]:
    annotations: dict[str, Any] = {}
    for base in reversed(kind.__mro__):
        annotations |= getattr(base, "__annotations__", {})
    return tuple(name for name, hint in annotations.items() if _is_optional(hint) and not name.startswith("_"))


def _is_optional(hint: Any) -> bool:
    return get_origin(hint) is Union and type(None) in get_args(hint)


def moment(seconds: int) -> str:
    """A time in the form of the second API."""
    return dt.datetime.fromtimestamp(seconds, dt.UTC).strftime("%Y-%m-%dT%H:%M:%S.000Z")


def list_object(things: list[StripeObject], url: str, has_more: bool = False) -> StripeObject:
    """A list in the form of the first API."""
    return {"object": "list", "data": things, "has_more": has_more, "url": url}
