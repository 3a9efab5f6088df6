"""Sends the mails that are due: drops the outdated ones, and renders and sends the others."""

from collections.abc import Sequence

from holdfast.accounts.signin import links
from holdfast.accounts.stopped_mails import mailboxes
from holdfast.inventory.mails import sql
from holdfast.inventory.mails.low_stock import LowStockMail
from holdfast.inventory.mails.writing import MailBatch, MailOrder, write
from holdfast.inventory.resources import Database
from holdfast.kit.mail import rendering
from holdfast.kit.mail.outbox import Mail
from holdfast.kit.mail.rendering import ContentRenderer, RenderedMails


async def run(database: Database) -> None:
    """Send mails until cancelled. A process that does not know the public address of the service sends none."""
    await rendering.run_sender(database, write, render)


async def render(renderer: ContentRenderer[MailBatch], database: Database, mails: Sequence[Mail]) -> RenderedMails:
    """Return the mails as they are sent."""
    signing_in = [mail for mail in mails if mail.kind == "sign_in"]
    low = [mail for mail in mails if mail.kind == "low_stock"]
    orders: dict[int, MailOrder] = {
        **await links.mail_contents(database, signing_in),
        **await _about_low_stock(database, low),
    }
    return await rendering.render(
        mails,
        await mailboxes.without_stopped(database, orders),
        lambda orders: renderer(MailBatch(database.resources.mailer.sender, orders)),
    )


async def _about_low_stock(database: Database, mails: Sequence[Mail]) -> dict[int, LowStockMail]:
    """Return the texts to write about pools, by the ids of the mails, without pools that are no longer low."""
    if not mails:
        return {}
    pools = await database.read(lambda reader: sql.find_low_pools(reader, mails))
    resources = database.resources
    return {
        mail.id: LowStockMail(
            mail.recipient,
            mail.message_id(resources.mailer.domain),
            mail.inserted_at,
            pool.language,
            f"{resources.settings.base_url}/console/pools/{mail.arguments['pool_id']}",
            pool=pool.name,
            unit=pool.unit,
            available=pool.available,
            low_stock_at=pool.low_stock_at,
        )
        for mail in mails
        if (pool := pools.get(mail.id))
    }
