"""A service with a payment processor, an organizer who is paid out, and people who pay.

Nothing happens in the background: a test says when registrations are settled, when the service works with the
processor (`work`), and when the messages of the processor arrive (`deliver`).
"""

import contextlib
import json
import re
import time
from collections.abc import AsyncGenerator
from html import unescape
from typing import Any

import httpx2
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from holdfast.events.payments import part as payments
from holdfast.events.payments.due import PaymentTable, PaymentWork, ProcessorAccess
from holdfast.events.payments.partner_webhooks import sign
from holdfast.events.resources import Database
from holdfast.events.settings import Settings
from holdfast_demo.stripe.processor import StripeDouble, new_secrets
from holdfast_demo.stripe.webhooks import Endpoint
from tests.events.pages.own_registration import own_path
from tests.helpers.event_visitor import Visitor, page_state
from tests.helpers.events_service import Client, Service, eventually, running_events
from tests.helpers.row_work import handle_all
from tests.helpers.serving import PresentApp, bind_port, running_already, serve_app

ANN = "ann@example.com"

EVENT_BODY = json.dumps(
    {"id": "evt_1", "type": "checkout.session.completed", "data": {"object": {"id": "cs_1"}}}
).encode()

SECRET = "whsec_of_the_tests"


async def handle_payments(database: Database, table: PaymentTable) -> int:
    """Handle every row of a table of payments that is due now. Returns the number of rows."""
    return await handle_all(PaymentWork(database, table, ProcessorAccess()))


class PaymentScene:
    """The service, the processor, and who is there.

    heard    the messages that the processor has sent and that were not delivered yet: signature and body
    """

    def __init__(self, service: Service, processor: StripeDouble, heard: list[tuple[str, bytes]]) -> None:
        self.service = service
        self.processor = processor
        self.heard = heard

    async def organizer(self) -> Client:
        """An organizer who has finished everything at the processor."""
        return await self.connect_payouts(await self.service.organizer())

    async def connect_payouts(self, organizer: Client) -> Client:
        """Let an organizer finish everything at the processor."""
        answer = await organizer.post("/api/stripe/onboarding_link")
        assert answer.status_code == 200, answer.text
        self.processor.finish(answer.json()["data"]["stripe_account_id"])
        await self.service.run_sql("update payout_accounts set due_at = now()")
        await self.work()
        await self.service.wait_for_notices()
        return organizer

    async def event(self, organizer: Client, **fields: Any) -> int:
        """An event for which a seat costs 12 euros, and of which the platform keeps 5 percent."""
        event_fields = {"currency": "EUR", "pricing_mode": "fixed", "price": 1200, "capacity": 1, **fields}
        return (await organizer.create_event(**event_fields))["id"]

    async def register(self, event_id: int, email: str) -> "Buyer":
        """A person who has sent the form; it is settled, and the page to pay is ready."""
        buyer = await self.register_without_work(event_id, email)
        await self.work()
        return buyer

    async def register_without_work(self, event_id: int, email: str) -> "Buyer":
        """A person who has sent the form; it is settled, and the processor knows nothing of it."""
        visitor = Visitor(self.service)
        buyer = Buyer(self, visitor, await visitor.register(event_id, email), event_id, email)
        await self.service.settle()
        return buyer

    async def work(self) -> int:
        """Do everything that is due with the processor. Returns how much that was."""
        done = 0
        while more := sum([await handle_payments(self.service.database, line) for line in payments.PAYMENT_TABLES]):
            done += more
        return done

    async def deliver(self) -> list[int]:
        """Deliver the messages of the processor, and do what they lead to. Returns how they were answered."""
        statuses = await self.deliver_messages()
        await self.work()
        return statuses

    async def deliver_messages(self) -> list[int]:
        """Deliver the messages of the processor. Returns how they were answered."""
        await eventually(lambda: not self.processor.webhooks.waiting())
        statuses = [await self.tell(*message) for message in self.heard]
        self.heard.clear()
        return statuses

    async def tell(self, signature: str, body: bytes) -> int:
        """Send a message to the service. Returns the status of the answer."""
        headers = {"Stripe-Signature": signature, "Content-Type": "application/json; charset=utf-8"}
        return (await self.service.http.post("/stripe/webhook", content=body, headers=headers)).status_code

    async def time_is_up(self) -> None:
        """Let the time be over for which seats are held."""
        await self.service.run_sql(
            "update payments set ends_at = now() - interval '1 second', due_at = now()"
            " where state in ('opening', 'open')"
        )
        await self.work()

    async def counts(self, event_id: int) -> dict[str, int]:
        """How many registrations of an event have each status."""
        rows = await self.service.run_sql(
            "select status::text, count(*) from registrations where event_id = %(id)s group by status", id=event_id
        )
        return dict(rows)  # pyright: ignore[reportArgumentType]

    def moved_amount(self, kind: str) -> int:
        """The sum of what the processor's books say was moved, such as `charge`, `refund`."""
        return sum(self.processor.books.moved(kind).values())


class Buyer:
    """A person who has registered for a paid event, at the page that shows the outcome."""

    def __init__(self, scene: PaymentScene, visitor: Visitor, path: str, event_id: int, email: str) -> None:
        self.scene = scene
        self.visitor = visitor
        self.path = path
        self.event_id = event_id
        self.email = email

    async def page(self) -> httpx2.Response:
        return await self.visitor.http.get(self.path)

    async def status(self) -> str:
        """How the registration stands, as the page says."""
        return page_state(await self.page())

    async def session(self) -> str:
        """The id of the session behind the link to pay."""
        rows = await self.scene.service.run_sql(
            "select session_id from payments join users on users.id = user_id"
            " where email = %(email)s and event_id = %(event_id)s order by payments.id desc limit 1",
            email=self.email,
            event_id=self.event_id,
        )
        return str(rows[0][0])

    async def link(self) -> str | None:
        """The link to pay that the page shows."""
        match = re.search(r'<a class="button" href="([^"]+)" target="_(?:blank|top)"', (await self.page()).text)
        return unescape(match[1]) if match else None

    async def pay(self) -> None:
        """Pay at the processor. The service does not know of it yet."""
        self.scene.processor.pay(await self.session())


class SharedProcessor:
    """A service with a processor, which the tests of a module share: each scene finds the processor as new."""

    def __init__(self, service: Service, address: str, key: str) -> None:
        self.service = service
        self._resources = service.database.resources
        self._address = address
        self._key = key
        self.app = PresentApp()

    @contextlib.asynccontextmanager
    async def open_scene(self) -> AsyncGenerator[PaymentScene]:
        """A new processor. The service must have been emptied."""
        self.service.database.resources = self._resources
        with contextlib.closing(processor_at(self._address, heard := [], key=self._key)) as processor:
            async with self.app.answering_with(processor.app):
                yield PaymentScene(self.service, processor, heard)
                processor.heal()


@contextlib.asynccontextmanager
async def open_shared_processor(settings: Settings) -> AsyncGenerator[SharedProcessor]:
    """A service and a processor to share, for as long as the block lasts."""
    port = bind_port()
    address = port.url
    key = new_secrets().api
    async with running_events(payable(settings, address, key)) as service:
        shared = SharedProcessor(service, address, key)
        async with serve_app(running_already(shared.app), port):
            yield shared


@contextlib.asynccontextmanager
async def open_payment_scene(settings: Settings, **options: Any) -> AsyncGenerator[PaymentScene]:
    """A service with a processor, for as long as the block lasts."""
    port = bind_port()
    address = port.url
    with contextlib.closing(processor_at(address, heard := [], **options)) as processor:
        async with (
            serve_app(processor.app, port),
            running_events(payable(settings, address, processor.key)) as service,
        ):
            yield PaymentScene(service, processor, heard)
            # The service waits for the answers to its calls before it ends.
            processor.heal()


def processor_at(address: str, heard: list[tuple[str, bytes]], **options: Any) -> StripeDouble:
    """A processor, whose messages are kept."""

    async def receive(request: Request) -> Response:
        heard.append((request.headers["stripe-signature"], await request.body()))
        return Response(status_code=204)

    processor = StripeDouble(address, endpoints=[Endpoint(f"{address}/hook", SECRET)], **options)
    processor.app.router.routes.insert(0, Route("/hook", receive, methods=["POST"]))
    return processor


def payable(settings: Settings, address: str, key: str) -> Settings:
    """The settings of a service whose processor is at an address."""
    return settings.model_copy(update={"stripe_key": key, "stripe_api": address, "stripe_webhook_secret": SECRET})


async def open_dispute(payment_scene: PaymentScene) -> str:
    """The id of a dispute about the only payment. The service has not heard of it."""
    [charge] = payment_scene.processor.things("charge")
    return payment_scene.processor.dispute(charge["id"])["id"]


def signature_header(body: bytes, *, secret: str = SECRET, age: int = 0) -> str:
    at = int(time.time()) - age
    return f"t={at},v1={sign(secret, at, body)}"


def handle_of(buyer: Buyer) -> str:
    return buyer.path.split("-")[1]


async def pay_for_seat(payment_scene: PaymentScene, ada: Client) -> Buyer:
    event_id = await payment_scene.event(ada)
    ann = await payment_scene.register(event_id, ANN)
    await ann.pay()
    await payment_scene.deliver()
    return ann


async def own_page_path(payment_scene: PaymentScene, ann: Buyer) -> str:
    address = await own_path(payment_scene.service, ann.event_id, ann.email)
    return address.removeprefix(payment_scene.service.database.resources.settings.base_url)
