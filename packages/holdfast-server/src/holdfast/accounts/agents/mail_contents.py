"""What is in the mails to people whose approval agents wait for, read when the mails are sent.

A mail has all requests of its credential that wait then. If none does, or its people want no such mails any more, it is
outdated.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from markupsafe import Markup

from holdfast.accounts.agents.agents_page import AGENTS, REQUESTS
from holdfast.accounts.agents.approvals import RequestFinder, WaitingRequest
from holdfast.accounts.agents.mail import RequestMail
from holdfast.accounts.agents.requests import CredentialId
from holdfast.kit.mail.outbox import Mail
from holdfast.kit.pages.language import Language, language_with_code
from holdfast.kit.pages.layout import Frame
from holdfast.kit.postgres.database import Database, Reader

MAX_SENTENCES = 5
"""The most requests that a mail names; of others it says how many there are."""

NO_LANGUAGES: Mapping[int, str | None] = {}

_FOREIGN_TEXT = re.compile("<bdi>(.*?)</bdi>", re.DOTALL)


class RequestSentences(NamedTuple):
    """Writes what an agent wants to do as a sentence.

    frame      has the templates of the console
    template   has the macro `request_sentence(request)`
    cleaned    a text that strangers wrote, as a mail may have it
    """

    frame: Frame
    template: str
    cleaned: Callable[[str], str] = str

    def sentence(self, request: WaitingRequest, language: Language) -> str:
        """The sentence of the page as text. Texts of strangers keep their direction."""
        template = "agents/request_sentence.html"
        html = self.frame.render(template, language=language, request_sentences=self.template, request=request)

        def isolated(match: re.Match[str]) -> str:
            return f"\u2068{Markup.escape(self.cleaned(Markup(match[1]).unescape()))}\u2069"  # noqa: S704 - a template wrote it

        return Markup(_FOREIGN_TEXT.sub(isolated, html)).striptags()  # noqa: S704 - the same


class _AskingCredential(NamedTuple):
    """A credential that waits for people. `waiting`: how many of its requests wait."""

    tenant_id: int
    id: CredentialId
    language: str | None
    waiting: int


async def mail_contents(
    database: Database[Any],
    mails: Sequence[Mail],
    finder: RequestFinder,
    sentences: RequestSentences,
    languages: Mapping[int, str | None] = NO_LANGUAGES,
) -> dict[int, RequestMail]:
    """The contents of mails by their ids, without outdated ones.

    languages    of recipients, by the ids of their mails; for others the language in which the mails were turned on
    """
    if not mails:
        return {}
    ids = {int(mail.arguments["limit_id"]) for mail in mails}
    credentials: dict[int, _AskingCredential] = await database.read(lambda reader: _find_credentials(reader, ids))
    requests_by_credential: dict[int, Sequence[WaitingRequest]] = {
        id: await finder.list_waiting(database.read, credential.tenant_id, MAX_SENTENCES, credential.id)
        for id, credential in credentials.items()
    }
    base_url, domain = database.resources.settings.base_url, database.resources.mailer.domain
    contents: dict[int, RequestMail] = {}
    for mail in mails:
        id = int(mail.arguments["limit_id"])
        requests = requests_by_credential.get(id)
        if not requests:
            continue
        credential = credentials[id]
        language = languages.get(mail.id) or credential.language
        contents[mail.id] = RequestMail(
            mail.recipient,
            mail.message_id(domain),
            mail.inserted_at,
            language,
            f"{base_url}{REQUESTS}/{requests[0].id}" if credential.waiting == 1 else f"{base_url}{AGENTS}",
            agent=sentences.cleaned(requests[0].agent_name),
            sentences=[sentences.sentence(request, language_with_code(language)) for request in requests],
            count=credential.waiting,
        )
    return contents


async def _find_credentials(reader: Reader[Any], limit_ids: set[int]) -> dict[int, _AskingCredential]:
    """The credentials of limits that still wait for people, by the ids of the limits."""
    rows = await reader.tuples(
        """
        select id, tenant_id, key_id, client_id, language, waiting.count
          from agent_limits
         cross join lateral (
               select count(*) from agent_requests
                where agent_requests.tenant_id = agent_limits.tenant_id and status = 'waiting' and expires_at > now()
                  and (agent_requests.key_id = agent_limits.key_id
                       or agent_requests.client_id = agent_limits.client_id)) as waiting
         where id = any(%(ids)s) and mails_requests
        """,
        {"ids": [*limit_ids]},
    )
    return {
        id: _AskingCredential(tenant_id, CredentialId(key_id, client_id), language, count)
        for id, tenant_id, key_id, client_id, language, count in rows
    }
