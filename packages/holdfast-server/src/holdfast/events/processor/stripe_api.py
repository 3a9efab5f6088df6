"""Stripe: destination charges to connected accounts, through Checkout. Uses its library, which blocks, in threads."""

import asyncio
import datetime as dt
import logging
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, TypeVar, cast

import stripe
import structlog
from stripe.params.checkout import SessionCreateParams
from stripe.params.v2.core import AccountCreateParams

from holdfast.events.processor.currencies import from_processor, to_processor
from holdfast.events.processor.processor import (
    Checkout,
    CheckoutSession,
    Dispute,
    DisputeStatus,
    NewAccount,
    ProcessorPayment,
    ProcessorRefusal,
    ProcessorUnreachable,
    RefundRequest,
    SessionStatus,
)
from holdfast.kit.contract.bounds import Bound
from holdfast.kit.contract.client import path_of, request_source, without_client
from holdfast.kit.contract.problems import Problem
from holdfast.kit.operations.slots import Slots

log = structlog.get_logger()


def dispute_of(dispute: Any) -> Dispute:
    """The fields of a dispute that the service needs. An unknown status counts as not decided."""
    status: DisputeStatus = "open"
    if dispute.status == "won":
        status = "won"
    elif dispute.status == "lost":
        status = "lost"
    elif dispute.status in ("warning_closed", "prevented"):
        status = "closed"
    elif dispute.status.startswith("warning_"):
        status = "inquiry"
    return Dispute(
        dispute.id,
        dispute.payment_intent or "",
        status,
        from_processor(dispute.amount, dispute.currency),
        bool(dispute.is_charge_refundable),
    )


T = TypeVar("T")

MAX_CONCURRENT_CALLS = 48
"""The most calls at the same time."""

MAX_CONCURRENT_CALLS_OF_SOURCE = 46
"""The most calls of background work, so that calls for waiting people find a thread; and of one address."""

CALLS = Bound(
    name="Calls of the payment processor",
    service="events",
    total=f"{MAX_CONCURRENT_CALLS}",
    tenant="the shares of its addresses",
    address=f"{MAX_CONCURRENT_CALLS_OF_SOURCE}, in turns; as many for background work, by due date",
    reserved="-",
    stranger="Others wait one turn, about half a second.",
)

CALL_TIMEOUT_SECONDS = 30
"""The longest time of one call."""

ATTEMPTS_WITH_A_KEY = 6
"""Attempts of one call with the same key: together they take more than a minute, longer than any single call."""

RATE_LIMIT_PAUSE_SECONDS = (2.0, 300.0)
"""Seconds without calls after too many calls: the default if Stripe does not say how many, and the maximum."""
logging.getLogger("stripe").setLevel(logging.WARNING)  # it would log each call


class Stripe:
    """One platform account of Stripe.

    key          its secret key
    namespace    the prefix of idempotency keys: several installations may use one platform account
    api          another address of the API; empty: the address of Stripe
    country      the country of new accounts, as two letters; empty: the country of the platform
    """

    def __init__(
        self, key: str, namespace: str, api: str = "", country: str = "", *, seconds: float = CALL_TIMEOUT_SECONDS
    ) -> None:
        self._namespace = namespace
        self._client = stripe.StripeClient(
            key,
            base_addresses={"api": api} if api else None,
            max_network_retries=0,
            http_client=stripe.RequestsClient(timeout=seconds),
        )
        self._country = country
        self._threads = ThreadPoolExecutor(MAX_CONCURRENT_CALLS, thread_name_prefix="stripe")
        self._slots = Slots(CALLS, MAX_CONCURRENT_CALLS, max_per_address=MAX_CONCURRENT_CALLS_OF_SOURCE)

    async def create_account(self, account: NewAccount) -> str:
        # The processor answers the same key with the same account, also with one that was ended.
        parts = (account.organizer_id, account.ended_count) if account.ended_count else (account.organizer_id,)
        key = self._key("account", *parts)
        try:
            account_object = await self._call_api(self._client.v2.core.accounts.create, self._recipient(account), key)
        except ProcessorRefusal as refusal:
            # A platform that began with the older API may not have the newer one.
            log.info("the payment processor makes no account by its interface v2", reason=str(refusal))
            account_object = await self._call_api(
                self._client.v1.accounts.create,
                _express_params(account, self._country),
                self._key("account v1", *parts),
            )
        return account_object.id

    async def is_ready(self, account_id: str) -> bool:
        include = {"include": ["configuration.recipient"]}
        try:
            account: Any = await self._call_api(self._client.v2.core.accounts.retrieve, account_id, include)
        except ProcessorRefusal:
            older: Any = await self._call_api(self._client.v1.accounts.retrieve, account_id)
            return bool(older.details_submitted and older.payouts_enabled)
        recipient = account.configuration and account.configuration.recipient
        balance = recipient and recipient.capabilities and recipient.capabilities.stripe_balance
        return bool(balance and balance.stripe_transfers and balance.stripe_transfers.status == "active")

    async def onboarding_url(self, account_id: str, *, again_url: str, done_url: str) -> str:
        try:
            link = await self._call_api(
                self._client.v2.core.account_links.create,
                {
                    "account": account_id,
                    "use_case": {
                        "type": "account_onboarding",
                        "account_onboarding": {"refresh_url": again_url, "return_url": done_url},
                    },
                },
            )
        except ProcessorRefusal:
            link = await self._call_api(
                self._client.v1.account_links.create,
                {
                    "account": account_id,
                    "type": "account_onboarding",
                    "refresh_url": again_url,
                    "return_url": done_url,
                },
            )
        return link.url

    async def open_session(self, checkout: Checkout) -> CheckoutSession:
        session_object = await self._call_api(
            self._client.v1.checkout.sessions.create,
            _session_params(checkout),
            self._key("checkout", checkout.payment_id, int(checkout.ends_at.timestamp())),
        )
        return _session_of(session_object)

    async def find_session(self, session_id: str) -> CheckoutSession:
        return _session_of(await self._call_api(self._client.v1.checkout.sessions.retrieve, session_id))

    async def end_session(self, session_id: str) -> CheckoutSession:
        try:
            return _session_of(await self._call_api(self._client.v1.checkout.sessions.expire, session_id))
        except ProcessorRefusal:
            # It was paid or has ended a moment ago.
            return await self.find_session(session_id)

    async def refund(self, refund: RefundRequest, attempt: int) -> str:
        if (attempt > 1 or refund.won_dispute_count) and (earlier_refund := await self._find_refund(refund)):
            return earlier_refund
        won = f" won {refund.won_dispute_count}" if refund.won_dispute_count else ""
        refund_object = await self._call_api(
            self._client.v1.refunds.create,
            {
                "payment_intent": refund.intent_id,
                "amount": to_processor(refund.amount, refund.currency),
                "reverse_transfer": True,
                "refund_application_fee": refund.has_fee,
                "metadata": {"refund": str(refund.id)},
            },
            # For a day, Stripe repeats an internal error for the same key. By then it is known that the call made no
            # refund, so another key is safe. A new key after a dispute is safe too: the refusal was an answer.
            self._key("refund", refund.id, refund.intent_id, f"{attempt // ATTEMPTS_WITH_A_KEY}{won}"),
        )
        return refund_object.id

    async def refund_failure(self, refund_id: str) -> str | None:
        refund: Any = await self._call_api(self._client.v1.refunds.retrieve, refund_id)
        if refund.status in ("failed", "canceled"):
            return refund.to_dict().get("failure_reason") or refund.status
        return None

    async def _find_refund(self, refund: RefundRequest) -> str | None:
        refunds: Any = await self._call_api(
            self._client.v1.refunds.list, {"payment_intent": refund.intent_id, "limit": 100}
        )
        return next(
            (
                stripe_refund["id"]
                for stripe_refund in refunds.to_dict()["data"]
                if stripe_refund["metadata"].get("refund") == str(refund.id)
            ),
            None,
        )

    async def find_dispute(self, dispute_id: str) -> Dispute:
        return dispute_of(await self._call_api(self._client.v1.disputes.retrieve, dispute_id))

    async def disputes_of(self, intent_id: str) -> list[Dispute]:
        disputes: Any = await self._call_api(self._client.v1.disputes.list, {"payment_intent": intent_id, "limit": 100})
        return [dispute_of(dispute) for dispute in disputes.data]

    async def payments_since(self, since: dt.datetime) -> AsyncIterator[ProcessorPayment]:
        last: str | None = None
        while True:
            page: Any = await self._call_api(
                self._client.v1.checkout.sessions.list,
                {
                    "created": {"gte": int(since.timestamp())},
                    "status": "complete",
                    "limit": 100,
                    "expand": ["data.payment_intent.latest_charge"],
                    **({"starting_after": last} if last else {}),
                },
            )
            for session in page.data:
                if session.payment_status == "paid":
                    charge = session.payment_intent.latest_charge
                    paid_amount, refunded_amount = (
                        from_processor(amount, session.currency)
                        for amount in (session.amount_total, charge.amount_refunded)
                    )
                    yield ProcessorPayment(
                        session.id,
                        session.payment_intent.id,
                        paid_amount,
                        session.currency,
                        refunded_amount,
                        charge.disputed,
                    )
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

    async def _call_api(self, call: Callable[..., T], *args: Any) -> T:
        try:
            # What has begun with the processor goes on when the client has gone.
            with without_client():
                async with self._slots.slot_of(("processor", *path_of(request_source()))):
                    return await asyncio.get_running_loop().run_in_executor(self._threads, partial(call, *args))
        except Problem as problem:
            raise ProcessorUnreachable(problem.message, 0) from problem
        except (stripe.InvalidRequestError, stripe.CardError) as error:
            raise ProcessorRefusal(error.user_message or str(error)) from error
        except stripe.StripeError as error:
            status = getattr(error, "http_status", None)
            if status in (400, 402, 403, 404) and not isinstance(error, stripe.IdempotencyError):
                raise ProcessorRefusal(error.user_message or str(error)) from error
            raise ProcessorUnreachable(str(error), _pause_seconds(error)) from error


def _pause_seconds(error: stripe.StripeError) -> float:
    """Seconds for which Stripe wants no calls. A 429 with `lock_timeout` only concerns one object, so it needs none."""
    if not isinstance(error, stripe.RateLimitError) or error.code == "lock_timeout":
        return 0
    default, maximum = RATE_LIMIT_PAUSE_SECONDS
    retry_after = (error.headers or {}).get("retry-after", "")
    return min(float(retry_after), maximum) if retry_after.isascii() and retry_after.isdigit() else default


def _express_params(account: NewAccount, country: str) -> Any:
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


def _session_params(checkout: Checkout) -> SessionCreateParams:
    metadata = {"payment": str(checkout.payment_id), "event": str(checkout.event_id)}
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
            "metadata": metadata,
        },
        "metadata": metadata,
        # Other methods settle days later, and the seat would have to be held for as long.
        "allowed_payment_method_types": ["card"],
        "locale": cast(Any, checkout.language),
        "expires_at": int(checkout.ends_at.timestamp()),
        "success_url": checkout.done_url,
        "cancel_url": checkout.back_url,
    }
    if checkout.email:
        params["customer_email"] = checkout.email
    return params


def _session_of(session: Any) -> CheckoutSession:
    status: SessionStatus = "open"
    if session.payment_status == "paid":
        status = "paid"
    elif session.status == "expired":
        status = "ended"
    intent = session.payment_intent
    return CheckoutSession(
        session.id,
        status,
        session.url,
        intent if isinstance(intent, str) or intent is None else intent.id,
        from_processor(session.amount_total, session.currency),
        session.currency,
    )
