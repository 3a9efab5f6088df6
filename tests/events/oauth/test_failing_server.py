"""While the authorization server fails, the last good keys serve for some time, and nothing is called wrong unasked."""

import asyncio
import time
from types import SimpleNamespace

import pytest
from structlog.testing import capture_logs

from holdfast.events.oauth import issuer as module
from holdfast.events.oauth.issuer import Issuer
from tests.events.oauth.authorization_server import AuthorizationServer, new_key
from tests.events.oauth.failures import FAILURES
from tests.events.oauth.outcomes import is_unavailable, refusal
from tests.helpers.events_service import eventually


@pytest.mark.parametrize("failure", ["it never answers", "it answers 500", "its keys are no keys"])
async def test_the_last_keys_remain_valid_while_the_authorization_server_fails(
    server: AuthorizationServer, issuer: Issuer, impatient: None, monkeypatch: pytest.MonkeyPatch, failure: str
) -> None:
    await issuer.verify(server.token())
    monkeypatch.setattr(module, "READ_TIMEOUT_SECONDS", 0.3)
    await FAILURES[failure][0](server)

    with capture_logs() as logs:
        assert await issuer.verify(server.token(sub="ben"))
        await eventually(lambda: logs)
    assert await issuer.verify(server.token(sub="cal"))
    assert "signature" in await refusal(issuer, server.token(key=new_key(), header={"kid": server.keys[0].kid}))


async def test_a_new_key_is_not_known_until_the_server_answers(
    server: AuthorizationServer, issuer: Issuer, impatient: None
) -> None:
    await issuer.verify(server.token())
    server.rotate()
    server.fail()
    token = server.token()

    assert "key is not known" in await refusal(issuer, token)
    server.recover()
    assert await issuer.verify(token)


async def test_a_valid_token_does_not_wait_for_keys_that_were_not_read_for_days(
    server: AuthorizationServer, issuer: Issuer, impatient: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    await issuer.verify(server.token())
    server.fall_silent()
    days_later = time.monotonic() + 3 * 86_400
    monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=lambda: days_later))
    monkeypatch.setattr(module, "NEW_KEY_TIMEOUT_SECONDS", 30.0)

    async with asyncio.timeout(2):
        assert await issuer.verify(server.token(sub="ben"))
    monkeypatch.setattr(module, "NEW_KEY_TIMEOUT_SECONDS", 0.05)
    assert "key is not known" in await refusal(issuer, server.token(key=new_key()))


async def test_a_server_that_fails_is_left_alone_for_a_while(
    server: AuthorizationServer, issuer: Issuer, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.fail()
    await is_unavailable(issuer, server.token())
    count = server.requests.total()
    server.recover()
    monkeypatch.setattr(module, "NEW_KEY_TIMEOUT_SECONDS", 0.05)

    await is_unavailable(issuer, server.token())
    assert server.requests.total() == count <= 2


async def test_a_caller_who_goes_away_leaves_the_reading_to_the_waiting_callers(
    server: AuthorizationServer, issuer: Issuer
) -> None:
    server.fall_silent()
    leaving, waiting = [asyncio.create_task(issuer.verify(server.token())) for _ in range(2)]
    await eventually(lambda: server.requests.total() > 0)
    leaving.cancel()
    await asyncio.wait([leaving])
    server.recover()

    assert (await waiting).subject == "ann"
    assert server.readings == 1


async def test_a_cancelled_read_of_keys_leaves_no_task_behind(server: AuthorizationServer, issuer: Issuer) -> None:
    server.fall_silent()
    before = asyncio.all_tasks()
    waiting = asyncio.create_task(is_unavailable(issuer, server.token()))
    await eventually(lambda: server.requests.total() > 0)
    issuer.close()
    await waiting

    ours = {task for task in asyncio.all_tasks() - before if task.get_name().startswith("keys of")}
    assert ours == set()
