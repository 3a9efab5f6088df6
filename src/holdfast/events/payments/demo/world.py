"""What every part of the processor uses: the objects, the books, the time, and the events that tell of changes."""

import datetime as dt
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, Union, get_args, get_origin

from holdfast.events.payments.demo.books import Books
from holdfast.events.payments.demo.store import Store, Thing, new_id
from holdfast.kit.doubles.clock import Clock

VERSION = "2026-10-28.endive"

PLATFORM_ID = "acct_demoplatform"
"""The account of those who run Holdfast."""

LINK_SECONDS = 300
"""How long a link for onboarding works."""


class World:
    """The state of one processor.

    address    where its pages are, as browsers reach them
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
        self.request: Thing | None = None
        self.on_event: list[Callable[[Thing], None]] = []
        self.on_deadline: list[Callable[[], None]] = []

    def tell(self, type: str, thing: Thing, account: str = "") -> None:
        """Keep an event of the first API, which has the object as it is now.

        account    the connected account that it is about; empty: the platform
        """
        event: Thing = {
            "id": new_id("evt"),
            "object": "event",
            "api_version": VERSION,
            "created": self.clock.now(),
            "data": {"object": public(thing)},
            "livemode": False,
            "pending_webhooks": 1,
            "request": self.request or {"id": None, "idempotency_key": None},
            "type": type,
        }
        self._keep({**event, "account": account} if account else event)

    def notify(self, type: str, account: str, data: Mapping[str, Any], related: bool = True) -> None:
        """Keep a thin event of the second API: it names an account, and `data` is only told to those who ask."""
        event: Thing = {
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
        self._keep(event)

    def _keep(self, event: Thing) -> None:
        self.store.put(event)
        for each in self.on_event:
            each(event)

    def deadline(self) -> None:
        """Say that something has a new time at which it ends."""
        for each in self.on_deadline:
            each()


def public(value: Any) -> Any:
    """A value without what is only for ourselves."""
    if isinstance(value, dict):
        return {name: public(each) for name, each in value.items() if not name.startswith("_")}  # pyright: ignore[reportUnknownVariableType, reportUnknownMemberType]
    if isinstance(value, list):
        return [public(each) for each in value]  # pyright: ignore[reportUnknownVariableType]
    return value


def whole(kind: type, thing: Thing) -> Thing:
    """An object with null for every member that stripe-python's class of it has and that was not given."""
    return {**dict.fromkeys(_nullable(kind)), **thing}


@cache
def _nullable(kind: type) -> tuple[str, ...]:
    annotations: dict[str, Any] = {}
    for each in reversed(kind.__mro__):
        annotations |= getattr(each, "__annotations__", {})
    return tuple(name for name, hint in annotations.items() if _is_optional(hint) and not name.startswith("_"))


def _is_optional(hint: Any) -> bool:
    return get_origin(hint) is Union and type(None) in get_args(hint)


def moment(seconds: int) -> str:
    """A time as the second API writes it."""
    return dt.datetime.fromtimestamp(seconds, dt.UTC).strftime("%Y-%m-%dT%H:%M:%S.000Z")


def listed(things: list[Thing], url: str, has_more: bool = False) -> Thing:
    """A list as the first API answers it."""
    return {"object": "list", "data": things, "has_more": has_more, "url": url}
