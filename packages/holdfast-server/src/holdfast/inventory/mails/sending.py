"""Sends the mails that are due: drops the outdated ones, and renders and sends the others."""

from collections.abc import Mapping, Sequence

from msgspec import Struct

from holdfast.accounts.agents.approvals import RequestFinder
from holdfast.accounts.agents.mail import RequestMail
from holdfast.accounts.agents.mail_contents import RequestSentences, mail_contents
from holdfast.accounts.signin import links
from holdfast.accounts.stopped_mails import mailboxes
from holdfast.accounts.webhooks import mail_contents as webhook_mails
from holdfast.inventory.agents.approval_facts import find_credentials, read_facts
from holdfast.inventory.api import OPERATIONS
from holdfast.inventory.availability.stock_pace import PACE_AND_DAYS_OF_COVER, STOCK_AND_RECENT_USE
from holdfast.inventory.mails.writing import LowStockMail, MailBatch, MailContent, write
from holdfast.inventory.resources import Database, Reader
from holdfast.inventory.site import SITE
from holdfast.kit.mail import rendering
from holdfast.kit.mail.outbox import Mail
from holdfast.kit.mail.rendering import ContentRenderer, RenderedMails

SENTENCES = RequestSentences(SITE, "console/agents/request_sentences.html")
"""Writes what agents want to do."""


class LowPool(Struct, frozen=True):
    """A low pool for the mail to one merchant, in the merchant's language.

    shop            the domain
    days_of_cover   for how many days the stock lasts, as on the page of low stock; None while none is taken
    """

    shop: str
    name: str
    unit: str
    available: int
    low_stock_at: int
    language: str | None
    taken_per_day: float
    days_of_cover: float | None


async def find_low_pools(reader: Reader, mails: Sequence[Mail]) -> Mapping[int, LowPool]:
    """The pools of mails, by the ids of the mails, without those that are no longer low or whose merchant has
    turned the mails off.
    """
    rows = await reader.tuples(
        # What was taken is added up once for a pool, not for each merchant of the shop.
        f"""
        with pool as materialized (
            select id, shop_id, name, unit, available, low_stock_at, {PACE_AND_DAYS_OF_COVER} from pools
              {STOCK_AND_RECENT_USE}
             where id = any(%(pools)s) and is_low and status = 'active')
        select mail.mail_id, domain, pool.name, pool.unit, available, low_stock_at, merchants.language,
               taken_per_day, days_of_cover
          from unnest(%(mails)s::bigint[], %(pools)s::bigint[], %(merchants)s::bigint[])
               as mail (mail_id, pool_id, merchant_id)
          join pool on pool.id = mail.pool_id
          join merchants on merchants.id = mail.merchant_id and merchants.shop_id = pool.shop_id
          join shops on shops.id = pool.shop_id
         where wants_low_stock
        """,
        {
            "mails": [mail.id for mail in mails],
            "pools": [mail.arguments["pool_id"] for mail in mails],
            "merchants": [mail.arguments["merchant_id"] for mail in mails],
        },
    )
    return {id: LowPool(*rest) for id, *rest in rows}


async def run(database: Database) -> None:
    """Send mails until cancelled. A process that does not know the public address of the service sends none."""
    await rendering.run_sender(database, write, render)


async def render(renderer: ContentRenderer[MailBatch], database: Database, mails: Sequence[Mail]) -> RenderedMails:
    """The mails as they are sent."""
    sign_in_mails = [mail for mail in mails if mail.kind == "sign_in"]
    low_stock_mails = [mail for mail in mails if mail.kind == "low_stock"]
    request_mails = [mail for mail in mails if mail.kind == "agent_requests"]
    endpoint_mails = [mail for mail in mails if mail.kind == "webhook_failing"]
    contents: dict[int, MailContent] = {
        **await links.mail_contents(database, sign_in_mails),
        **await _about_low_stock(database, low_stock_mails),
        **await _about_requests(database, request_mails),
        **await webhook_mails.mail_contents(database, endpoint_mails, await _languages(database, endpoint_mails)),
    }
    return await rendering.render(
        mails,
        await mailboxes.without_stopped(database, contents),
        lambda contents: renderer(MailBatch(database.resources.mailer.sender, contents)),
    )


async def _about_low_stock(database: Database, mails: Sequence[Mail]) -> dict[int, LowStockMail]:
    """The texts to write about pools, by the ids of the mails, without pools that are no longer low."""
    if not mails:
        return {}
    pools = await database.read(lambda reader: find_low_pools(reader, mails))
    resources = database.resources
    return {
        mail.id: LowStockMail(
            mail.recipient,
            mail.message_id(resources.mailer.domain),
            mail.inserted_at,
            pool.language,
            f"{resources.settings.base_url}/console/pools/{mail.arguments['pool_id']}",
            shop=pool.shop,
            pool=pool.name,
            unit=pool.unit,
            available=pool.available,
            low_stock_at=pool.low_stock_at,
            taken_per_day=pool.taken_per_day,
            days_of_cover=pool.days_of_cover,
        )
        for mail in mails
        if (pool := pools.get(mail.id))
    }


async def _about_requests(database: Database, mails: Sequence[Mail]) -> dict[int, RequestMail]:
    """The texts to write about requests of agents, by the ids of the mails, without outdated ones."""
    finder = RequestFinder(OPERATIONS, database, find_credentials, read_facts)
    languages = await _languages_of_merchants(database, mails)
    current = [mail for mail in mails if mail.id in languages]
    return await mail_contents(database, current, finder, SENTENCES, languages)


async def _languages(database: Database, mails: Sequence[Mail]) -> Mapping[int, str | None]:
    """The languages of mails about endpoints, by the ids of the mails, whose recipients still work in the console."""
    if not mails:
        return {}
    parameters = {
        "ids": [mail.id for mail in mails],
        "merchants": [mail.arguments["merchant_id"] for mail in mails],
        "endpoints": [mail.arguments["endpoint_id"] for mail in mails],
        "recipients": [mail.recipient for mail in mails],
    }
    rows = await database.read(
        lambda reader: reader.tuples(
            """
            select mail.id, merchants.language
              from unnest(%(ids)s::bigint[], %(merchants)s::bigint[], %(endpoints)s::bigint[], %(recipients)s::text[])
                   as mail (id, merchant_id, endpoint_id, recipient)
              join webhook_endpoints on webhook_endpoints.id = endpoint_id
              join merchants on merchants.id = merchant_id and shop_id = tenant_id and email = recipient
            """,
            parameters,
        )
    )
    return dict(rows)


async def _languages_of_merchants(database: Database, mails: Sequence[Mail]) -> Mapping[int, str | None]:
    """The languages of mails about requests, by their ids, whose recipients still work in the console of their shop."""
    if not mails:
        return {}
    parameters = {
        "ids": [mail.id for mail in mails],
        "merchants": [mail.arguments["merchant_id"] for mail in mails],
        "limits": [mail.arguments["limit_id"] for mail in mails],
        "recipients": [mail.recipient for mail in mails],
    }
    rows = await database.read(
        lambda reader: reader.tuples(
            """
            select mail.id, merchants.language
              from unnest(%(ids)s::bigint[], %(merchants)s::bigint[], %(limits)s::bigint[], %(recipients)s::text[])
                   as mail (id, merchant_id, limit_id, recipient)
              join agent_limits on agent_limits.id = limit_id
              join merchants on merchants.id = merchant_id and shop_id = tenant_id and email = recipient
            """,
            parameters,
        )
    )
    return dict(rows)
