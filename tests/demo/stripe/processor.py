"""A running payment processor, a client of it like the service's, and a receiver of its webhooks."""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Callable
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import httpx2
import pytest
import stripe
from starlette.routing import Route

from holdfast_demo.stripe.processor import StripeDouble
from holdfast_demo.stripe.webhooks import Endpoint
from tests.demo.webhook_recorder import WebhookRecorder
from tests.helpers.serving import PLAIN, bind_port, serve_app

T = TypeVar("T")

SECRET = "whsec_tests"


class StripeRefusal(NamedTuple):
    """What an `InvalidRequestError` says."""

    status: int | None
    code: str | None
    param: str | None
    message: str


class ProcessorScene:
    """A processor, and what the platform does with it."""

    def __init__(self, processor: StripeDouble, recorder: WebhookRecorder, http: httpx2.AsyncClient) -> None:
        self.processor = processor
        self.recorder = recorder
        self.http = http
        self.client = self.client_with(processor.key)

    def client_with(self, key: str) -> stripe.StripeClient:
        return stripe.StripeClient(key, base_addresses={"api": self.processor.address}, max_network_retries=0)

    async def do(self, call: Callable[..., T], *args: Any, **options: Any) -> T:
        """Call a method of the client, which blocks."""
        return await asyncio.to_thread(call, *args, **options)

    async def account(self, *, done: bool = True) -> str:
        """A connected account of version 2."""
        made = await self.do(self.client.v2.core.accounts.create, ACCOUNT_V2)
        if done:
            self.processor.finish(made.id)
        return made.id

    async def session(self, account: str = "", **changes: Any) -> stripe.checkout.Session:
        """A session for 25 euros, of which the platform gets 2.50."""
        params = self.params(account or await self.account(), **changes)
        return await self.do(self.client.v1.checkout.sessions.create, params)

    def params(self, account: str, *, amount: int = 2500, fee: int = 250, currency: str = "eur", **changes: Any) -> Any:
        price = {"currency": currency, "unit_amount": amount, "product_data": {"name": "Life drawing"}}
        return {
            "mode": "payment",
            "line_items": [{"quantity": 1, "price_data": price}],
            "payment_intent_data": {"application_fee_amount": fee, "transfer_data": {"destination": account}},
            "success_url": "https://events.example/done?session={CHECKOUT_SESSION_ID}",
            "cancel_url": "https://events.example/back",
            "expires_at": self.processor.clock.now() + 1860,
            **changes,
        }

    async def fails(self, call: Callable[..., object], *args: Any, **options: Any) -> stripe.StripeError:
        """The error that a call raises."""
        with pytest.raises(stripe.StripeError) as raised:
            await self.do(call, *args, **options)
        return raised.value

    async def refuses(self, call: Callable[..., object], *args: Any, **options: Any) -> StripeRefusal:
        """What a call is refused for."""
        error: Any = await self.fails(call, *args, **options)
        assert isinstance(error, stripe.InvalidRequestError)
        return StripeRefusal(error.http_status, error.code, error.param, str(error.user_message))  # pyright: ignore[reportUnknownMemberType, reportUnknownArgumentType]


ACCOUNT_V2: Any = {
    "contact_email": "ada@example.com",
    "display_name": "Ada Events",
    "dashboard": "express",
    "defaults": {"responsibilities": {"fees_collector": "application", "losses_collector": "application"}},
    "configuration": {"recipient": {"capabilities": {"stripe_balance": {"stripe_transfers": {"requested": True}}}}},
    "include": ["configuration.recipient"],
}

ACCOUNT_V1: Any = {
    "email": "ada@example.com",
    "controller": {
        "fees": {"payer": "application"},
        "losses": {"payments": "application"},
        "stripe_dashboard": {"type": "express"},
    },
    "capabilities": {"transfers": {"requested": True}},
}


@contextlib.asynccontextmanager
async def run_processor(path: Path | None = None, **options: Any) -> AsyncGenerator[ProcessorScene]:
    """A processor that runs, with a receiver of its webhooks, for as long as the block lasts."""
    port, recorder = bind_port(), WebhookRecorder()
    address = port.url
    processor = StripeDouble(address, path=path, endpoints=[Endpoint(f"{address}/hook", SECRET)], **options)
    processor.app.router.routes.insert(0, Route("/hook", recorder.receive, methods=["POST"]))
    processor.webhooks.first_pause = 0.01
    try:
        async with (
            serve_app(processor.app, port),
            httpx2.AsyncClient(base_url=address, verify=PLAIN, trust_env=False) as http,
        ):
            yield ProcessorScene(processor, recorder, http)
    finally:
        processor.close()
