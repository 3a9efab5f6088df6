"""Stripe: destination charges to connected accounts, through Checkout. Uses its library, which blocks, in threads."""

import asyncio
import datetime as dt
import logging
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, Literal, TypeVar, cast

import stripe
import structlog
from stripe.params.checkout import SessionCreateParams
from stripe.params.v2.core import AccountCreateParams

from holdfast.events.processor.currencies import from_processor, to_processor
from holdfast.events.processor.disputed import disputed
from holdfast.events.processor.processor import (
    Checkout,
    Dispute,
    NewAccount,
    Refund,
    Refused,
    Session,
    Taken,
    Unreachable,
)

T = TypeVar("T")

AT_ONCE = 48
"""The most calls at the same time. Those that people wait for find a thread: the background work takes fewer."""

SECONDS = 30
"""How long a call may take."""

ATTEMPTS_WITH_A_KEY = 6
"""Attempts of one call with the same key: they take more than a minute together, and no call takes as long."""

PAUSES = (2.0, 300.0)
"""Seconds without calls after too many of them, if Stripe does not say how many; and at most."""

log = structlog.get_logger()
logging.getLogger("stripe").setLevel(logging.WARNING)  # it would log each call


class Stripe:
    """One platform account of Stripe.

    key          its secret key
    namespace    what idempotency keys begin with: several installations may use one platform account
    api          another address of the API; empty: that of Stripe
    country      the country of new accounts, as two letters; empty: that of the platform
    """

    def __init__(self, key: str, namespace: str, api: str = "", country: str = "", *, seconds: float = SECONDS) -> None:
        self._namespace = namespace
        self._client = stripe.StripeClient(
            key,
            base_addresses={"api": api} if api else None,
            max_network_retries=0,
            http_client=stripe.RequestsClient(timeout=seconds),
        )
        self._country = country
        self._threads = ThreadPoolExecutor(AT_ONCE, thread_name_prefix="stripe")

    async def create_account(self, account: NewAccount) -> str:
        key = self._key("account", account.organizer_id)
        try:
            made = await self._do(self._client.v2.core.accounts.create, self._recipient(account), key)
        except Refused as refused:
            # A platform that began with the older interface may not have the newer one.
            log.info("the payment processor makes no account by its interface v2", reason=str(refused))
            made = await self._do(
                self._client.v1.accounts.create,
                _express(account, self._country),
                self._key("account v1", account.organizer_id),
            )
        return made.id

    async def is_ready(self, account_id: str) -> bool:
        include = {"include": ["configuration.recipient"]}
        try:
            account: Any = await self._do(self._client.v2.core.accounts.retrieve, account_id, include)
        except Refused:
            older: Any = await self._do(self._client.v1.accounts.retrieve, account_id)
            return bool(older.details_submitted and older.payouts_enabled)
        recipient = account.configuration and account.configuration.recipient
        balance = recipient and recipient.capabilities and recipient.capabilities.stripe_balance
        return bool(balance and balance.stripe_transfers and balance.stripe_transfers.status == "active")

    async def onboarding_url(self, account_id: str, *, again_url: str, done_url: str) -> str:
        try:
            link = await self._do(
                self._client.v2.core.account_links.create,
                {
                    "account": account_id,
                    "use_case": {
                        "type": "account_onboarding",
                        "account_onboarding": {"refresh_url": again_url, "return_url": done_url},
                    },
                },
            )
        except Refused:
            link = await self._do(
                self._client.v1.account_links.create,
                {
                    "account": account_id,
                    "type": "account_onboarding",
                    "refresh_url": again_url,
                    "return_url": done_url,
                },
            )
        return link.url

    async def open_session(self, checkout: Checkout) -> Session:
        made = await self._do(
            self._client.v1.checkout.sessions.create,
            _session(checkout),
            self._key("checkout", checkout.payment_id, int(checkout.ends_at.timestamp())),
        )
        return _seen(made)

    async def find_session(self, session_id: str) -> Session:
        return _seen(await self._do(self._client.v1.checkout.sessions.retrieve, session_id))

    async def end_session(self, session_id: str) -> Session:
        try:
            return _seen(await self._do(self._client.v1.checkout.sessions.expire, session_id))
        except Refused:
            # It was paid, or has ended, a moment ago.
            return await self.find_session(session_id)

    async def refund(self, refund: Refund, attempt: int) -> str:
        if (attempt > 1 or refund.won) and (known := await self._find_refund(refund)):
            return known
        won = f" won {refund.won}" if refund.won else ""
        made = await self._do(
            self._client.v1.refunds.create,
            {
                "payment_intent": refund.intent_id,
                "amount": to_processor(refund.amount, refund.currency),
                "reverse_transfer": True,
                "refund_application_fee": refund.has_fee,
                "metadata": {"refund": str(refund.id)},
            },
            # Stripe answers a key that met an error of its own with that error for a day. By then it is known that
            # the call made no refund, so another key is safe. So is one after a dispute: the refusal was an answer.
            self._key("refund", refund.id, refund.intent_id, f"{attempt // ATTEMPTS_WITH_A_KEY}{won}"),
        )
        return made.id

    async def has_failed(self, refund_id: str) -> str | None:
        refund: Any = await self._do(self._client.v1.refunds.retrieve, refund_id)
        if refund.status in ("failed", "canceled"):
            return refund.to_dict().get("failure_reason") or refund.status
        return None

    async def _find_refund(self, refund: Refund) -> str | None:
        made: Any = await self._do(self._client.v1.refunds.list, {"payment_intent": refund.intent_id, "limit": 100})
        return next(
            (each["id"] for each in made.to_dict()["data"] if each["metadata"].get("refund") == str(refund.id)), None
        )

    async def find_dispute(self, dispute_id: str) -> Dispute:
        return disputed(await self._do(self._client.v1.disputes.retrieve, dispute_id))

    async def disputes_of(self, intent_id: str) -> list[Dispute]:
        found: Any = await self._do(self._client.v1.disputes.list, {"payment_intent": intent_id, "limit": 100})
        return [disputed(each) for each in found.data]

    async def taken_since(self, since: dt.datetime) -> AsyncIterator[Taken]:
        last: str | None = None
        while True:
            page: Any = await self._do(
                self._client.v1.checkout.sessions.list,
                {
                    "created": {"gte": int(since.timestamp())},
                    "status": "complete",
                    "limit": 100,
                    "expand": ["data.payment_intent.latest_charge"],
                    **({"starting_after": last} if last else {}),
                },
            )
            for each in page.data:
                if each.payment_status == "paid":
                    charge = each.payment_intent.latest_charge
                    taken, refunded = (
                        from_processor(amount, each.currency) for amount in (each.amount_total, charge.amount_refunded)
                    )
                    yield Taken(each.id, each.payment_intent.id, taken, each.currency, refunded, charge.disputed)
            if not page.has_more:
                return
            last = page.data[-1].id

    def _key(self, *parts: object) -> Any:
        return {"idempotency_key": ":".join(map(str, (self._namespace, *parts)))}

    def _recipient(self, account: NewAccount) -> AccountCreateParams:
        params: AccountCreateParams = {
            "contact_email": account.email,
            "display_name": account.name,
            "dashboard": "express",
            "defaults": {"responsibilities": {"fees_collector": "application", "losses_collector": "application"}},
            "configuration": {
                "recipient": {"capabilities": {"stripe_balance": {"stripe_transfers": {"requested": True}}}}
            },
            "metadata": {"organizer": str(account.organizer_id)},
        }
        if self._country:
            params["identity"] = {"country": self._country}
        return params

    async def _do(self, call: Callable[..., T], *args: Any) -> T:
        try:
            return await asyncio.get_running_loop().run_in_executor(self._threads, partial(call, *args))
        except (stripe.InvalidRequestError, stripe.CardError) as error:
            raise Refused(error.user_message or str(error)) from error
        except stripe.StripeError as error:
            status = getattr(error, "http_status", None)
            if status in (400, 402, 403, 404) and not isinstance(error, stripe.IdempotencyError):
                raise Refused(error.user_message or str(error)) from error
            raise Unreachable(str(error), _pause(error)) from error


def _pause(error: stripe.StripeError) -> float:
    """Seconds for which Stripe wants no calls. Its other use of 429 is about one object that is being changed."""
    if not isinstance(error, stripe.RateLimitError) or error.code == "lock_timeout":
        return 0
    usual, longest = PAUSES
    wanted = (error.headers or {}).get("retry-after", "")
    return min(float(wanted), longest) if wanted.isascii() and wanted.isdigit() else usual


def _express(account: NewAccount, country: str) -> Any:
    params = {
        "email": account.email,
        "controller": {
            "fees": {"payer": "application"},
            "losses": {"payments": "application"},
            "stripe_dashboard": {"type": "express"},
        },
        "capabilities": {"transfers": {"requested": True}},
        "metadata": {"organizer": str(account.organizer_id)},
    }
    return {**params, "country": country} if country else params


def _session(checkout: Checkout) -> SessionCreateParams:
    named = {"payment": str(checkout.payment_id), "event": str(checkout.event_id)}
    params: SessionCreateParams = {
        "mode": "payment",
        "client_reference_id": str(checkout.payment_id),
        "line_items": [
            {
                "quantity": 1,
                "price_data": {
                    "currency": checkout.currency.lower(),
                    "unit_amount": to_processor(checkout.amount, checkout.currency),
                    "product_data": {"name": checkout.title[:200]},
                },
            }
        ],
        "payment_intent_data": {
            "application_fee_amount": to_processor(checkout.fee, checkout.currency),
            "transfer_data": {"destination": checkout.account_id},
            "metadata": named,
        },
        "metadata": named,
        # Others settle days later, and the seat would have to be held for as long.
        "allowed_payment_method_types": ["card"],
        "locale": cast(Any, checkout.language),
        "expires_at": int(checkout.ends_at.timestamp()),
        "success_url": checkout.done_url,
        "cancel_url": checkout.back_url,
    }
    if checkout.email:
        params["customer_email"] = checkout.email
    return params


def _seen(session: Any) -> Session:
    state: Literal["open", "paid", "ended"] = "open"
    if session.payment_status == "paid":
        state = "paid"
    elif session.status == "expired":
        state = "ended"
    intent = session.payment_intent
    return Session(
        session.id,
        state,
        session.url,
        intent if isinstance(intent, str) or intent is None else intent.id,
        from_processor(session.amount_total, session.currency),
        session.currency,
    )
