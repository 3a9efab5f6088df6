"""The processor: its secrets, its application, its background work, its methods for tests, and `holdfast up`."""

import asyncio
import contextlib
import secrets
import socket
from collections.abc import AsyncGenerator, Sequence
from pathlib import Path
from typing import NamedTuple

from starlette.applications import Starlette
from starlette.routing import Route

from holdfast.kit.environment.settings import DEMO_PAYMENTS_FILE
from holdfast.kit.http.sockets import address_of
from holdfast.kit.security.service_secret import secret
from holdfast_demo.shared.serving import run_in_background
from holdfast_demo.shared.store import Clock
from holdfast_demo.shared.testing import Faults
from holdfast_demo.stripe import accounts, api, disputes, pages, payments, refunds, sessions
from holdfast_demo.stripe.books import Books, UnbalancedBooks
from holdfast_demo.stripe.errors import Fault
from holdfast_demo.stripe.handler import ApiHandler
from holdfast_demo.stripe.params import check_params
from holdfast_demo.stripe.processor_state import ProcessorState, without_private
from holdfast_demo.stripe.store import Store, StripeObject
from holdfast_demo.stripe.webhooks import Endpoint, StripeWebhooks


class ProcessorSecrets(NamedTuple):
    """The API key of requests, and the secret that signs webhooks."""

    api: str
    webhooks: str


def new_secrets() -> ProcessorSecrets:
    return ProcessorSecrets(f"sk_test_{secrets.token_urlsafe(32)}", f"whsec_{secrets.token_urlsafe(32)}")


def load_or_create_secrets(file: Path) -> ProcessorSecrets:
    """The secrets in files next to the database, made if they do not exist. Only their owner can read them."""
    api, webhooks = [secret("", file.with_suffix(suffix)).value.decode() for suffix in (".key", ".webhooks")]
    return ProcessorSecrets(f"sk_test_{api}", f"whsec_{webhooks}")


class StripeDouble:
    """A payment processor, for tests and demonstrations.

    Serve `app` and point a `StripeClient(processor.key, base_addresses={"api": processor.address})` at it. The other
    methods are for the thread and the event loop in which it is served.

    address      where browsers and programs reach it, without a slash at the end
    key          the API key of requests; empty: a new one
    path         the file of its database; None: in memory, until it is closed
    endpoints    the endpoints that get webhooks
    accounts_v2  whether the platform may make accounts of version 2
    """

    def __init__(
        self,
        address: str,
        *,
        key: str = "",
        path: Path | None = None,
        endpoints: Sequence[Endpoint] = (),
        accounts_v2: bool = True,
    ) -> None:
        self._store = Store(path)
        self._state = ProcessorState(self._store, address, key or new_secrets().api)
        self._state.accounts_v2 = accounts_v2
        self._faults: Faults[Fault] = Faults()
        self._sessions_changed = asyncio.Event()
        self.webhooks = StripeWebhooks(self._state, endpoints)
        self._state.on_deadline.append(self._sessions_changed.set)
        self._state.clock.on_move.append(self._sessions_changed.set)
        self._handler = ApiHandler(self._state, self._faults)
        routes = [
            *pages.routes(self._state),
            Route("/{path:path}", self._handler.answer, methods=["GET", "POST", "DELETE"]),
        ]
        self.app = Starlette(routes=routes, lifespan=self._lifespan)

    @property
    def address(self) -> str:
        return self._state.address

    @property
    def key(self) -> str:
        return self._state.key

    @property
    def clock(self) -> Clock:
        return self._state.clock

    @property
    def books(self) -> Books:
        return self._state.books

    def balance(self, account: str) -> dict[str, int]:
        """The balance of an account by currency: of `platform`, or of the id of a connected account."""
        return self.books.balance(account)

    def check(self) -> None:
        """Raises `UnbalancedBooks` if the books contradict themselves or the objects of the API."""
        self.books.check()
        for kind, movement in (
            (payments.CHARGE, "charge"),
            (payments.TRANSFER, "transfer"),
            (payments.FEE, "application_fee"),
            (refunds.KIND, "refund"),
            (refunds.REVERSAL, "transfer_reversal"),
            ("fee_refund", "application_fee_refund"),
            (disputes.KIND, "dispute"),
        ):
            amounts = {thing["id"]: thing["amount"] for thing in self._store.every(kind) if thing["amount"]}
            if amounts != self.books.moved(movement):
                raise UnbalancedBooks(f"The objects of the kind {kind} are not those that the books have.")

    def things(self, kind: str) -> list[StripeObject]:
        """All objects of a kind, oldest first: `checkout.session`, `charge`, `refund`, `transfer`, `event` …"""
        return self._store.every(kind)

    def execute(self, method: str, path: str, params: StripeObject) -> StripeObject:
        """Execute a request without HTTP and its faults. Raises `StripeRefusal`."""
        operation, id = api.find(method, path)
        call = api.Call(path, id, check_params(params, operation.params, operation.modelled, json=True))
        with self._store.change():
            return without_private(operation.action(self._state, call))

    def pay(self, session_id: str, card: str = "4242424242424242") -> StripeObject:
        """Pay a session, as a payer does on its page.

        Raises `StripeRefusal` if it is not open or the card is declined.
        """
        with self._store.change():
            sessions.expire_due(self._state)
        with self._store.change():
            return payments.pay(self._state, session_id, card)

    def ready_account(self, name: str, email: str) -> str:
        """The id of the finished account with an address; it is made if there is none."""
        for account in self._store.every(accounts.KIND):
            if account["email"] == email and account["_done"]:
                return account["id"]
        account: StripeObject = {
            "display_name": name,
            "contact_email": email,
            "dashboard": "express",
            "defaults": {"responsibilities": {"fees_collector": "application", "losses_collector": "application"}},
            "configuration": {
                "recipient": {"capabilities": {"stripe_balance": {"stripe_transfers": {"requested": True}}}}
            },
        }
        with self._store.change():
            id = accounts.create_v2(self._state, account)["id"]
        self.finish(id)
        return id

    def finish(self, account_id: str) -> None:
        """Finish an account, as a person does on its page."""
        with self._store.change():
            link = accounts.new_link(self._state, account_id, self.address, self.address)
            accounts.finish(self._state, link)

    def restrict(self, account_id: str) -> None:
        """Require more information about a finished account, which gets no payouts until it is finished again."""
        with self._store.change():
            accounts.restrict(self._state, account_id)

    def plan(self, fault: Fault) -> None:
        """Plan a fault of a future request."""
        self._faults.plan(fault)

    def heal(self) -> None:
        """Remove all planned faults, and send the slow answers that are waiting."""
        self._faults.clear()
        self._handler.end_slowness()

    def leave_refunds_pending(self, pending: bool = True) -> None:
        """Set whether refunds wait for `settle_refund`."""
        self._state.refunds_settle = not pending

    def settle_refund(self, refund_id: str, failure: str = "") -> StripeObject:
        """Settle a refund: it has succeeded, or failed for a reason."""
        with self._store.change():
            return refunds.settle(self._state, refund_id, failure)

    def dispute(self, charge_id: str) -> StripeObject:
        """Dispute a charge, as its cardholder does at the bank."""
        with self._store.change():
            return disputes.open_one(self._state, charge_id)

    def decide(self, dispute_id: str, status: disputes.DecidedStatus) -> StripeObject:
        """End a dispute, as the bank does. It is won if the platform keeps the money."""
        with self._store.change():
            return disputes.decide(self._state, dispute_id, status)

    def refuse_accounts_v2(self, is_refused: bool = True) -> None:
        """Set whether accounts of version 2 are refused, as for platforms without them."""
        self._state.accounts_v2 = not is_refused

    def close(self) -> None:
        """Close the store. Data in memory is lost."""
        self._store.close()

    @contextlib.asynccontextmanager
    async def _lifespan(self, _: Starlette) -> AsyncGenerator[None]:
        async with run_in_background(self.webhooks.run(), self._end_in_time()):
            yield

    async def _end_in_time(self) -> None:
        """Expire sessions at their end time, until the task is cancelled."""
        while True:
            self._sessions_changed.clear()
            with self._store.change():
                sessions.expire_due(self._state)
            end = sessions.next_end(self._state)
            pause = None if end is None else max(0.0, end - self.clock.time())
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(pause):
                    await self._sessions_changed.wait()


def secrets_in(data_dir: Path) -> ProcessorSecrets:
    """The secrets of the processor."""
    return load_or_create_secrets(data_dir / DEMO_PAYMENTS_FILE)


def demo_processor(listener: socket.socket, events_url: str, data_dir: Path) -> StripeDouble:
    """The processor that will be served on a socket.

    events_url    the address of the service that gets its webhooks
    """
    ours = secrets_in(data_dir)
    endpoints = [Endpoint(f"{events_url}/stripe/webhook", ours.webhooks)]
    return StripeDouble(address_of(listener), key=ours.api, path=data_dir / DEMO_PAYMENTS_FILE, endpoints=endpoints)
