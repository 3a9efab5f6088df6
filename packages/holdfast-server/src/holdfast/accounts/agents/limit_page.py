"""The page of the daily limit of one credential: an API key, or a connected app. Both consoles have it."""

import re
from collections.abc import Callable, Mapping

from msgspec.structs import replace

from holdfast.accounts.agents.limits import MAX_DAILY_LIMIT, CredentialLimit, GetLimit, LimitOperations, SetLimit
from holdfast.accounts.console import Console
from holdfast.accounts.sessions import Session
from holdfast.kit.contract.caller import Caller
from holdfast.kit.contract.command import check
from holdfast.kit.contract.messages import GroupedNumber, Message, message
from holdfast.kit.contract.problems import NOT_FOUND, VALIDATION_FAILED, Problem
from holdfast.kit.http.handler import Reply, Request, read_query
from holdfast.kit.http.index import Route
from holdfast.kit.operations.runner import Runner
from holdfast.kit.pages.language import language_of

LIMIT = "/console/agents/limit"
"""The path of the page. `?key=` has the id of an API key, `?app=` that of the client of a connected app."""


_NUMBER = re.compile("[0-9]{1,30}|[0-9]{1,3}([., '\u2019\u00a0\u202f][0-9]{3}){1,9}")
"""Digits, or groups of three as people write them in one language or the other."""


class AgentLimitPage:
    """Answers requests for the page of a limit.

    runner       runs the operations on limits
    caller_of    the caller of a signed-in person
    counts       what is counted: `people` or `units`, for the words of the page
    layout       the template that the page extends
    lists        the paths of the pages that list keys and apps: `key` and `app`
    """

    def __init__(
        self,
        console: Console,
        runner: Runner,
        operations: LimitOperations,
        caller_of: Callable[[Session], Caller],
        *,
        counts: str,
        layout: str,
        lists: Mapping[str, str],
    ) -> None:
        self._console = console
        self._get_limit, self._set_limit = runner.run_of(operations.get_limit), runner.run_of(operations.set_limit)
        self._caller_of = caller_of
        self._counts = counts
        self._layout = layout
        self._lists = lists

    def routes(self) -> list[Route]:
        return [self._console.route(LIMIT, "agent_limit", self.limit, "POST")]

    async def limit(self, session: Session, request: Request) -> Reply:
        """Show the limit of a credential with the form to change it; with POST change it."""
        command = _credential(request)
        kind = "key" if command.key_id is not None else "app"
        limit: CredentialLimit = await self._get_limit(self._caller_of(session), command)
        if request.method != "POST":
            return self._page(session, request, command, limit, "" if limit.daily_limit is None else limit.daily_limit)
        fields = await self._console.signed_in.read(session, request)
        text = fields.get("daily_limit", "")
        daily_limit = _read_limit(text)
        asks_first, mails_requests = (fields.get(name) == "yes" for name in ("asks_first", "mails_requests"))
        if isinstance(daily_limit, Message):
            limit = replace(limit, asks_first=asks_first, mails_requests=mails_requests)
            return self._page(session, request, command, limit, text, daily_limit)
        change = SetLimit(
            key_id=command.key_id,
            client_id=command.client_id,
            daily_limit=daily_limit,
            asks_first=asks_first,
            mails_requests=mails_requests,
            language=language_of(request).code,
        )
        await self._set_limit(self._caller_of(session), change)
        return self._console.redirect(request, self._lists[kind])

    def _page(
        self,
        session: Session,
        request: Request,
        command: GetLimit,
        limit: CredentialLimit,
        value: int | str,
        error: Message | None = None,
    ) -> Reply:
        kind = "key" if command.key_id is not None else "app"
        return self._console.signed_in.page(
            session,
            request,
            "agents/agent_limit.html",
            VALIDATION_FAILED.status if error else 200,
            here=self._lists[kind],
            kind=kind,
            id=command.key_id if kind == "key" else command.client_id,
            limit=limit,
            counts=self._counts,
            frame=self._layout,
            list_path=self._lists[kind],
            values={"daily_limit": str(value)},
            errors={"daily_limit": [error]} if error else {},
        )


def _credential(request: Request) -> GetLimit:
    """The credential that the query names. Raises `not_found` for none, and for ids that cannot exist."""
    query = read_query(request.query)
    key, app = query.get("key", ""), query.get("app", "")
    if key and not (key.isascii() and key.isdecimal() and len(key) < 19):
        raise NOT_FOUND()
    try:
        return check(GetLimit, {"key_id": int(key) if key else None, "client_id": app or None})
    except Problem as problem:
        if problem.type is VALIDATION_FAILED:
            raise NOT_FOUND() from problem
        raise


def _read_limit(text: str) -> int | Message | None:
    """The typed limit, None for an empty field, or the message that refuses it."""
    if not text:
        return None
    if not _NUMBER.fullmatch(text):
        return message("Enter a whole number, such as %(example)s, or leave it empty.", example=GroupedNumber(20))
    number = int("".join(re.findall("[0-9]+", text)))
    if number > MAX_DAILY_LIMIT:
        return message("Enter %(most)s or less.", most=GroupedNumber(MAX_DAILY_LIMIT))
    return number
