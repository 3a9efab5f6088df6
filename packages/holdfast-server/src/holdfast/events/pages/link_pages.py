"""Pages behind a signed link to one registration."""

from holdfast.events.log.receipt_file import receipt_file
from holdfast.events.processor.currencies import digits
from holdfast.events.registrations import own_receipt, own_registration, removed_registrations
from holdfast.events.registrations.links import Link, LinkKind, read
from holdfast.events.registrations.own_receipt import GetOwnReceipt
from holdfast.events.registrations.removed_registrations import RemovedPayment
from holdfast.events.resources import Database
from holdfast.events.site import SITE
from holdfast.kit.contract.caller import Caller
from holdfast.kit.contract.problems import NOT_FOUND
from holdfast.kit.http.handler import Reply, Request
from holdfast.kit.pages.language import Language
from holdfast.kit.running.operation import Operation
from holdfast.kit.running.rate_limits import Limits
from holdfast.kit.running.run_modes import read as read_once
from holdfast.kit.running.run_modes import read_batched, single
from holdfast.kit.running.runner import Runner
from holdfast.kit.security.secrets import Secret
from holdfast_verify.formats.receipts import ReceiptFile

READ_REGISTRATION = Operation("look_at_own", None, read_batched(own_registration.get))
"""Reads the registration that a link names. It has no route and no tool of its own."""

READ_REMOVED_PAYMENT = Operation("look_at_removed_payment", None, read_once(removed_registrations.last_payment))
"""Reads the last payment of a registration that was removed. It has no route and no tool of its own."""


GET_RECEIPT = Operation("get_own_receipt", None, single(own_receipt.get))
"""Makes the receipt of the registration that a link names. It has no route and no tool of its own."""

RECEIPT = "receipt"
"""The query of a page behind a link that asks for the receipt of the registration as a file."""


class ReceiptFiles:
    """Answers with the signed receipts of registrations, as files."""

    def __init__(self, database: Database, runner: Runner) -> None:
        self._database, self._get = database, runner[GET_RECEIPT]

    async def answer(self, caller: Caller, link: Link) -> Reply:
        """The receipt of the registration that a link names. Raises `not_found`."""
        file: ReceiptFile = await self._get(caller, GetOwnReceipt(**link._asdict()))
        return await receipt_file(self._database, file, f"receipt-event-{link.event_id}.json")


def asks_receipt(request: Request) -> bool:
    return RECEIPT in SITE.read_query(request)


async def read_link(kind: LinkKind, request: Request, secret: Secret, limits: Limits, caller: Caller) -> Link:
    """The link in the address of a request. Raises `not_found` if its signature is wrong, and `rate_limited`."""
    link = read(secret, kind, request.scope["path_params"]["link"])
    if link is None:
        await limits.hit("wrong links", caller.name)
        raise NOT_FOUND()
    return link


def gone_page(
    language: Language,
    status: int = 410,
    *,
    framed: bool = False,
    payment: RemovedPayment | None = None,
    paid: bool = False,
) -> Reply:
    """The page behind a link to a registration that was removed, or replaced by a newer one.

    payment    its last payment, from which the page explains the refund
    paid       whether the visitor comes from the page of the payment processor after a payment
    """
    places = digits(payment.currency) if payment else 0
    return SITE.page("pages/gone.html", status, language=language, framed=framed, own=payment, paid=paid, digits=places)
