"""After any order of actions by clients and thieves, codes and tokens work exactly as the rules say."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from holdfast.accounts import sessions
from holdfast.events.oauth_server import grants, tokens
from holdfast.events.oauth_server.clients import insert
from holdfast.events.oauth_server.model import Client, Consent, OAuthTokens
from holdfast.events.oauth_server.tokens import challenge_of
from holdfast.events.resources import Database
from holdfast.events.service import EVENTS
from holdfast.kit.security.api_keys import digest
from tests.helpers.databases import scratch_database
from tests.helpers.events_service import unlimited

VERIFIER = "v" * 43
ME, THIEF = "client_me", "client_thief"

Step = tuple[str, int]
STEPS = st.lists(
    st.tuples(
        st.sampled_from(
            ["allow", "redeem", "redeem wrongly", "refresh", "steal", "give back", "wait", "revoke", "end all"]
        ),
        st.integers(0, 30),
    ),
    max_size=14,
)


@dataclass
class Grant:
    """What one consent should have led to."""

    code: str
    redeemed: bool = False
    ended: bool = False
    access: set[str] = field(default_factory=set[str])
    refresh: str | None = None
    used: set[str] = field(default_factory=set[str])
    repeatable: str | None = None
    """The refresh token that is answered with the present tokens again."""


@dataclass
class TokenHistory:
    """What was done, what should work now, and the database in which it was done."""

    database: Database
    session: int
    grants: list[Grant] = field(default_factory=list[Grant])

    async def do(self, step: Step) -> None:
        what, choice = step
        if what == "allow":
            allowed = Consent(self.session, 7, 7, ME, ["read_events"], "https://app.example/", challenge_of(VERIFIER))
            self.grants.append(Grant(await self._transact(lambda tx: grants.allow(tx, allowed))))
        elif what == "end all":
            await self._transact(lambda tx: grants.end_all(tx, 7))
            for candidate in self.grants:
                candidate.ended = True
        elif self.grants:
            grant = self.grants[choice % len(self.grants)]
            await getattr(self, f"_{what.replace(' ', '_')}")(grant, choice)

    async def _redeem(self, grant: Grant, choice: int, verifier: str = VERIFIER) -> None:
        result = await self._transact(lambda tx: tokens.redeem(tx, grant.code, ME, verifier, None))
        good = not grant.ended and not grant.redeemed and verifier == VERIFIER
        assert isinstance(result, OAuthTokens) == good
        if isinstance(result, OAuthTokens):
            grant.redeemed = True
            self._take(grant, result)
        else:
            grant.ended = True

    async def _redeem_wrongly(self, grant: Grant, choice: int) -> None:
        await self._redeem(grant, choice, "w" * 43)

    async def _refresh(self, grant: Grant, choice: int, client_id: str = ME) -> None:
        refresh_tokens = sorted(grant.used | ({grant.refresh} if grant.refresh else set()))
        if not refresh_tokens:
            return
        token = refresh_tokens[choice % len(refresh_tokens)]
        result = await self._transact(lambda tx: tokens.refresh(tx, token, client_id, None))
        good = not grant.ended and token in {grant.refresh, grant.repeatable} and client_id == ME
        assert isinstance(result, OAuthTokens) == good
        if isinstance(result, OAuthTokens) and token == grant.repeatable:
            assert result.refresh == grant.refresh
        elif isinstance(result, OAuthTokens):
            grant.used.add(token)
            grant.repeatable = token
            self._take(grant, result)
        else:
            grant.ended = True

    async def _steal(self, grant: Grant, choice: int) -> None:
        await self._refresh(grant, choice, THIEF)

    async def _wait(self, grant: Grant, choice: int) -> None:
        """Two minutes later."""
        sql = "update oauth_refresh_tokens set used_at = used_at - interval '2 minutes'"
        await self._transact(lambda tx: tx.run(sql))
        for candidate in self.grants:
            candidate.repeatable = None

    async def _give_back(self, grant: Grant, choice: int) -> None:
        if grant.access:
            token = sorted(grant.access)[choice % len(grant.access)]
            await self._transact(lambda tx: tokens.revoke(tx, token, ME))
            grant.access.discard(token)

    async def _revoke(self, grant: Grant, choice: int) -> None:
        if grant.refresh:
            token = grant.refresh
            await self._transact(lambda tx: tokens.revoke(tx, token, ME))
            grant.ended = True

    def _take(self, grant: Grant, issued_tokens: OAuthTokens) -> None:
        grant.access.add(issued_tokens.access)
        grant.refresh = issued_tokens.refresh

    async def check(self) -> None:
        """What works is exactly what should, and it acts for the person who allowed it."""
        every = {token: not grant.ended for grant in self.grants for token in grant.access}
        callers = await self.database.read(
            lambda reader: tokens.find_callers(reader, [digest(token) for token in every])
        )
        assert {digest(token) for token, works in every.items() if works} == callers.keys()
        assert all(caller.tenant_id == 7 and caller.scopes == {"read_events"} for caller in callers.values())

    async def _transact(self, work: Callable[[Any], Awaitable[Any]]) -> Any:
        return await self.database.transact(work)


@pytest.fixture(scope="module")
def run(template_url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[list[Step]], None]]:
    """Runs steps in a database that all examples share."""
    with scratch_database(template_url, "tokens") as url, asyncio.Runner() as runner:
        database = EVENTS.database(unlimited(url, tmp_path_factory.mktemp("tokens")))

        async def begin() -> int:
            await database.pool.open()
            await database.transact(lambda tx: insert(tx, Client(ME, None, ["https://app.example/"])))
            await database.transact(lambda tx: sessions.begin(tx, 7, "link", "a test"))
            [listed] = await database.read(lambda reader: sessions.list_open(reader, 7))
            return listed.id

        async def run(steps: list[Step]) -> None:
            history = TokenHistory(database, session)
            for step in steps:
                await history.do(step)
                await history.check()

        session = runner.run(begin())
        yield lambda steps: runner.run(run(steps))
        runner.run(database.pool.close())


@given(STEPS)
@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_no_history_lets_a_token_work_that_should_not(run: Callable[[list[Step]], None], steps: list[Step]) -> None:
    run([("allow", 0), ("redeem", 0), *steps])
