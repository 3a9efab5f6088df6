"""Sends the mails that are due: looks whether each is still true, and has it written and sent."""

from collections.abc import Sequence

from holdfast.accounts.signin import links
from holdfast.inventory.mails import sql
from holdfast.inventory.mails.low_stock import LowStockMail
from holdfast.inventory.mails.writing import Portion, write
from holdfast.inventory.resources import Database
from holdfast.kit import rendering
from holdfast.kit.outbox import Mail
from holdfast.kit.rendering import Rendered, Writer


async def run(database: Database) -> None:
    """Send mails until cancelled. A process that does not know the public address of the service sends none."""
    await rendering.run(database, write, render)


async def render(writer: Writer[Portion], database: Database, mails: Sequence[Mail]) -> Rendered:
    """The mails as they are sent."""
    signing_in = [each for each in mails if each.kind == "sign_in"]
    low = [each for each in mails if each.kind == "low_stock"]
    return await rendering.render(
        mails,
        {**await links.orders(database, signing_in), **await _about_low_stock(database, low)},
        lambda orders: writer(Portion(database.resources.mailer.sender, orders)),
    )


async def _about_low_stock(database: Database, mails: Sequence[Mail]) -> dict[int, LowStockMail]:
    """What is to be written about pools, by the ids of the mails; without those that are not low any more."""
    if not mails:
        return {}
    pools = await database.read(lambda reader: sql.find(reader, mails))
    resources = database.resources
    return {
        mail.id: LowStockMail(
            mail.recipient,
            mail.message_id(resources.mailer.domain),
            mail.inserted_at,
            pool.language,
            f"{resources.settings.base_url}/console",
            pool.name,
            pool.unit,
            pool.available,
            pool.low_stock_at,
        )
        for mail in mails
        if (pool := pools.get(mail.id))
    }
