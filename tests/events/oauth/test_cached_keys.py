"""The keys of the authorization server and verified tokens are cached, and replaced in time."""

import asyncio

import pytest

from holdfast.events.oauth import issuer as module
from holdfast.events.oauth.issuer import Issuer
from tests.events.oauth.authorization_server import AuthorizationServer, new_key
from tests.events.oauth.outcomes import refusal
from tests.helpers.events_service import eventually


async def readings(server: AuthorizationServer, count: int) -> None:
    """Wait until the keys have been requested a number of times, and no more often."""

    async def counted() -> bool:
        reading = any(task.get_name() == f"keys of {server.issuer}" for task in asyncio.all_tasks())
        return server.readings >= count and not reading

    await eventually(counted, 60)
    assert server.readings == count


async def test_the_keys_are_read_once_for_all_waiting_tokens(server: AuthorizationServer, issuer: Issuer) -> None:
    claims = await asyncio.gather(*(issuer.verify(server.token(sub=f"ann-{number}")) for number in range(50)))

    assert {token_claims.subject for token_claims in claims} == {f"ann-{number}" for number in range(50)}
    assert server.readings == 1


async def test_the_keys_are_read_again_after_a_while(
    server: AuthorizationServer, issuer: Issuer, monkeypatch: pytest.MonkeyPatch
) -> None:
    token = server.token()
    for _ in range(3):
        await issuer.verify(token)
    assert server.readings == 1

    monkeypatch.setattr(module, "MIN_READ_INTERVAL_SECONDS", 0.0)
    monkeypatch.setattr(module, "KEYS_TTL_SECONDS", -1.0)
    await issuer.verify(token)
    await readings(server, 2)


async def test_a_token_of_known_keys_is_verified_while_the_keys_are_read_again(
    server: AuthorizationServer, issuer: Issuer, impatient: None
) -> None:
    tokens = [server.token(sub=f"ann-{number}") for number in range(20)]
    await issuer.verify(tokens[0])
    server.fall_silent()

    for token in (*tokens, *tokens):
        await issuer.verify(token)
    server.recover()
    await readings(server, 2)


async def test_a_token_is_verified_once_and_then_cached(server: AuthorizationServer, issuer: Issuer) -> None:
    token = server.token()

    assert await issuer.verify(token) is await issuer.verify(token)


async def test_a_cache_of_verified_tokens_stays_bounded(
    server: AuthorizationServer, issuer: Issuer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MAX_CACHED_TOKENS", 2)
    tokens = [server.token(jti=str(number)) for number in range(3)]
    seen = [await issuer.verify(token) for token in tokens]

    assert await issuer.verify(tokens[2]) is seen[2]
    assert await issuer.verify(tokens[0]) is not seen[0]


async def test_a_cached_token_expires_from_the_cache(
    server: AuthorizationServer, issuer: Issuer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "CACHE_TTL_SECONDS", 0.0)
    token = server.token()

    assert await issuer.verify(token) is not await issuer.verify(token)


async def test_a_verified_token_is_cached_until_the_keys_change(
    server: AuthorizationServer, issuer: Issuer, impatient: None
) -> None:
    token = server.token()
    claims = await issuer.verify(token)
    for count in (2, 3):
        assert await issuer.verify(token) is claims
        await readings(server, count)

    server.keys.append(new_key())
    await issuer.verify(token)
    await readings(server, 4)
    again = await issuer.verify(token)
    assert again == claims
    assert again is not claims


async def test_a_new_key_is_accepted_at_once(
    server: AuthorizationServer, issuer: Issuer, monkeypatch: pytest.MonkeyPatch
) -> None:
    await issuer.verify(server.token())
    monkeypatch.setattr(module, "MIN_READ_INTERVAL_SECONDS", 0.0)

    server.keys.insert(0, new_key())
    fresh = await asyncio.gather(*(issuer.verify(server.token(sub=f"ann-{number}")) for number in range(5)))
    server.keys.insert(0, new_key(kid=None))
    unnamed = await issuer.verify(server.token(header={"kid": None}))

    assert len({token_claims.subject for token_claims in fresh}) == 5
    assert unnamed.subject == "ann"


async def test_a_token_of_a_withdrawn_key_is_refused(
    server: AuthorizationServer, issuer: Issuer, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = server.token()
    await issuer.verify(old)
    server.rotate()
    monkeypatch.setattr(module, "MIN_READ_INTERVAL_SECONDS", 0.0)
    await issuer.verify(server.token())

    assert "key is not known" in await refusal(issuer, old)


async def test_a_token_is_refused_when_all_keys_are_withdrawn(
    server: AuthorizationServer, issuer: Issuer, impatient: None
) -> None:
    token = server.token()
    await issuer.verify(token)
    server.jwks = []

    await issuer.verify(token)
    await readings(server, 2)
    assert "key is not known" in await refusal(issuer, token)
