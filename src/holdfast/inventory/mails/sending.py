"""Sends the mails that are due: looks whether each is still true, and has it written and sent."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from functools import partial

import structlog

from holdfast.accounts.signin import links
from holdfast.accounts.signin.mail import SignInMail
from holdfast.inventory.mails import sql
from holdfast.inventory.mails.low_stock import LowStockMail
from holdfast.inventory.mails.writing import Order, Portion, write
from holdfast.inventory.resources import Database
from holdfast.kit import sender
from holdfast.kit.elsewhere import Elsewhere
from holdfast.kit.mail import Envelope, NoAddress, Unwritable, envelope_address
from holdfast.kit.outbox import Mail

Writer = Callable[[Portion], Awaitable[Sequence[bytes]]]

log = structlog.get_logger()


async def run(database: Database) -> None:
    """Send mails until cancelled. A process that does not know the public address of the service sends none."""
    if not database.resources.settings.base_url:
        log.warning("this process sends no mails: set INVENTORY_BASE_URL, since mails have links to the service")
        await asyncio.Event().wait()
    async with Elsewhere(write) as writer:
        await send(database, writer)


async def send(database: Database, writer: Writer) -> None:
    """Send mails that somebody else writes, until cancelled."""
    await sender.run(database, partial(render, writer))


async def render(writer: Writer, database: Database, mails: Sequence[Mail]) -> list[Envelope | Unwritable | None]:
    """The mails as they are sent; None for those that are no longer true."""
    resources = database.resources
    rendered: dict[int, Envelope | Unwritable] = {}
    orders: dict[int, Order] = {}
    recipients: dict[int, str] = {}
    for each in mails:
        try:
            recipients[each.id] = envelope_address(each.recipient)
        except NoAddress as error:
            rendered[each.id] = Unwritable(str(error))
    good = [each for each in mails if each.id in recipients]
    signing_in = [each for each in good if each.kind == "sign_in"]
    base_url = resources.settings.base_url
    addresses = await links.addresses(database, signing_in, resources.secret, base_url)
    low = [each for each in good if each.kind == "low_stock"]
    pools = await database.read(lambda reader: sql.find(reader, low))
    for each in good:
        message_id = each.message_id(resources.mailer.domain)
        if address := addresses.get(each.id):
            language = each.arguments["language"]
            orders[each.id] = SignInMail(recipients[each.id], message_id, each.inserted_at, language, address)
        elif pool := pools.get(each.id):
            orders[each.id] = LowStockMail(
                recipients[each.id],
                message_id,
                each.inserted_at,
                pool.language,
                f"{base_url}/console",
                pool.name,
                pool.unit,
                pool.available,
                pool.low_stock_at,
            )
    if orders:
        portion = Portion(resources.mailer.sender, [*orders.values()])
        for (id, order), content in zip(orders.items(), await writer(portion), strict=True):
            rendered[id] = Envelope(order.recipient, order.message_id, content)
    return [rendered.get(each.id) for each in mails]
