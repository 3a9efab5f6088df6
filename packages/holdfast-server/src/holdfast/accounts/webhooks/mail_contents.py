"""What is in the mails about endpoints that were switched off, read when the mails are sent.

A mail is outdated if its endpoint was activated again, or deleted.
"""

from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import urlsplit

from holdfast.accounts.webhooks.mail import WebhookMail
from holdfast.accounts.webhooks.webhook_pages import WEBHOOKS
from holdfast.kit.mail.outbox import Mail
from holdfast.kit.postgres.database import Database


async def mail_contents(
    database: Database[Any], mails: Sequence[Mail], languages: Mapping[int, str | None]
) -> dict[int, WebhookMail]:
    """The contents of mails by their ids, without outdated ones.

    languages    the language of each mail whose recipient is still one of the tenant, by the id of the mail; None: the
                 one in which the endpoint was created
    """
    if not languages:
        return {}
    ids = {"ids": [mail.arguments["endpoint_id"] for mail in mails]}
    rows = await database.read(
        lambda reader: reader.tuples(
            """
            select id, url, language from webhook_endpoints
             where id = any(%(ids)s::bigint[]) and status = 'failing'
            """,
            ids,
        )
    )
    endpoints: dict[int, tuple[str, str | None]] = {id: (url, language) for id, url, language in rows}
    base_url, domain = database.resources.settings.base_url, database.resources.mailer.domain
    return {
        mail.id: WebhookMail(
            mail.recipient,
            mail.message_id(domain),
            mail.inserted_at,
            languages[mail.id] or endpoint[1],
            f"{base_url}{WEBHOOKS}/{mail.arguments['endpoint_id']}",
            host=urlsplit(endpoint[0]).hostname or "",
        )
        for mail in mails
        if mail.id in languages and (endpoint := endpoints.get(mail.arguments["endpoint_id"]))
    }
