"""The authorization server's keys: remembered, replaced in time, and missed when nobody can be asked."""

import asyncio
from typing import Any

import pytest
from structlog.testing import capture_logs

from holdfast.events.oauth import issuer as module
from holdfast.events.oauth import jwks
from holdfast.events.oauth.access_token import ALGORITHMS
from holdfast.events.oauth.issuer import Issuer
from tests.events.oauth.authorization_server import AuthorizationServer, new_key
from tests.events.oauth.failures import FAILURES
from tests.events.oauth.outcomes import is_not_believed, is_unavailable, refusal
from tests.support import eventually

HOUR = 3600.0


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is remembered, and the server may be asked at any time."""
    monkeypatch.setattr(module, "REMEMBERED", -1.0)
    monkeypatch.setattr(module, "COOL_DOWN", 0.0)


async def readings(server: AuthorizationServer, count: int) -> None:
    """Return once the keys have been asked for so often, and no more than that."""

    async def counted() -> bool:
        reading = any(task.get_name() == f"keys of {server.issuer}" for task in asyncio.all_tasks())
        return server.readings >= count and not reading

    await eventually(counted, 60)
    assert server.readings == count


# Remembering


async def test_the_keys_are_read_once_for_everybody_who_waits(server: AuthorizationServer, issuer: Issuer) -> None:
    claims = await asyncio.gather(*(issuer.verify(server.token(sub=f"ann-{number}")) for number in range(50)))

    assert {each.subject for each in claims} == {f"ann-{number}" for number in range(50)}
    assert server.readings == 1


async def test_the_keys_are_read_again_after_a_while(
    server: AuthorizationServer, issuer: Issuer, monkeypatch: pytest.MonkeyPatch
) -> None:
    token = server.token()
    for _ in range(3):
        await issuer.verify(token)
    assert server.readings == 1

    monkeypatch.setattr(module, "COOL_DOWN", 0.0)
    monkeypatch.setattr(module, "REMEMBERED", -1.0)
    await issuer.verify(token)
    await readings(server, 2)


async def test_nobody_waits_while_keys_that_are_known_are_read_again(
    server: AuthorizationServer, issuer: Issuer, impatient: None
) -> None:
    tokens = [server.token(sub=f"ann-{number}") for number in range(20)]
    await issuer.verify(tokens[0])
    server.fall_silent()

    for token in (*tokens, *tokens):
        await issuer.verify(token)
    server.recover()
    await readings(server, 2)


async def test_a_token_is_verified_once(server: AuthorizationServer, issuer: Issuer) -> None:
    token = server.token()

    assert await issuer.verify(token) is await issuer.verify(token)


async def test_what_is_remembered_stays_bounded(
    server: AuthorizationServer, issuer: Issuer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "CAPACITY", 2)
    tokens = [server.token(jti=str(number)) for number in range(3)]
    seen = [await issuer.verify(token) for token in tokens]

    assert await issuer.verify(tokens[2]) is seen[2]
    assert await issuer.verify(tokens[0]) is not seen[0]


async def test_what_was_verified_is_remembered_for_as_long_as_the_keys_stay_the_same(
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
    monkeypatch.setattr(module, "COOL_DOWN", 0.0)

    server.keys.insert(0, new_key())
    fresh = await asyncio.gather(*(issuer.verify(server.token(sub=f"ann-{number}")) for number in range(5)))
    server.keys.insert(0, new_key(kid=None))
    unnamed = await issuer.verify(server.token(header={"kid": None}))

    assert len({each.subject for each in fresh}) == 5
    assert unnamed.subject == "ann"


async def test_what_a_withdrawn_key_signed_ends(
    server: AuthorizationServer, issuer: Issuer, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = server.token()
    await issuer.verify(old)
    server.rotate()
    monkeypatch.setattr(module, "COOL_DOWN", 0.0)
    await issuer.verify(server.token())

    assert "key is not known" in await refusal(issuer, old)


async def test_where_all_keys_are_withdrawn_nothing_is_believed(
    server: AuthorizationServer, issuer: Issuer, impatient: None
) -> None:
    token = server.token()
    await issuer.verify(token)
    server.jwks = []

    await issuer.verify(token)
    await readings(server, 2)
    assert "key is not known" in await refusal(issuer, token)


async def test_made_up_keys_make_nobody_ask_the_server(
    server: AuthorizationServer, issuer: Issuer, monkeypatch: pytest.MonkeyPatch
) -> None:
    await issuer.verify(server.token())
    strangers = [new_key() for _ in range(10)]
    made_up = [server.token(key=key, header={"kid": kid}) for key in strangers for kid in (key.kid, None)]

    await asyncio.gather(*(is_unavailable(issuer, token) for token in made_up))
    assert server.readings == 1

    monkeypatch.setattr(module, "COOL_DOWN", 0.0)
    refused = await asyncio.gather(*(refusal(issuer, token) for token in made_up))
    assert all("key is not known" in each for each in refused)
    assert server.readings == 2
    monkeypatch.setattr(module, "COOL_DOWN", HOUR)
    await asyncio.gather(*(is_unavailable(issuer, token) for token in made_up))
    assert server.readings == 2


async def test_a_new_key_is_not_called_invalid_because_the_server_was_just_asked(
    server: AuthorizationServer, issuer: Issuer, monkeypatch: pytest.MonkeyPatch
) -> None:
    await issuer.verify(server.token())
    server.keys.insert(0, new_key())
    token = server.token()

    for _ in range(3):
        assert 1 <= await is_unavailable(issuer, token) <= module.COOL_DOWN
    monkeypatch.setattr(module, "COOL_DOWN", 0.0)
    assert await issuer.verify(token)
    assert server.readings == 2


@pytest.fixture
def tried(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """A list that has an entry for every key that a signature was tried with."""
    tried: list[str] = []
    algorithm = type(ALGORITHMS["ES256"])
    verify = algorithm.verify

    def counting(self: Any, message: bytes, signature: bytes, key: Any) -> bool:
        tried.append(key.kid)
        return verify(self, message, signature, key)

    monkeypatch.setattr(algorithm, "verify", counting)
    return tried


async def test_a_forged_token_is_tried_with_each_key_once(
    server: AuthorizationServer, issuer: Issuer, tried: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    server.keys += [new_key() for _ in range(4)]
    await issuer.verify(server.token())
    tried.clear()
    forged = server.token(key=new_key(), header={"kid": None})

    await is_unavailable(issuer, forged)
    assert len(tried) == 5
    tried.clear()
    monkeypatch.setattr(module, "COOL_DOWN", 0.0)  # now the server is asked, and has the same keys
    await refusal(issuer, forged)
    assert len(tried) == 5
    assert server.readings == 2


async def test_only_so_many_keys_are_used(server: AuthorizationServer, issuer: Issuer, tried: list[str]) -> None:
    used = [new_key() for _ in range(jwks.MOST)]
    surplus = new_key()
    encrypting = [{**new_key().as_dict(private=False), "use": "enc"} for _ in range(jwks.MOST)]
    server.jwks = [{}, *encrypting, *(key.as_dict(private=False) for key in (*used, surplus))]

    with capture_logs() as logs:
        await issuer.verify(server.token(key=used[-1]))
    assert [entry["event"] for entry in logs] == ["the authorization server has more keys than are used"]
    await is_not_believed(issuer, server.token(key=surplus))
    tried.clear()
    await is_not_believed(issuer, server.token(key=new_key(), header={"kid": None}))
    assert len(tried) == jwks.MOST


async def test_a_wrong_signature_by_a_known_key_makes_nobody_ask_the_server(
    server: AuthorizationServer, issuer: Issuer, monkeypatch: pytest.MonkeyPatch
) -> None:
    await issuer.verify(server.token())
    monkeypatch.setattr(module, "COOL_DOWN", 0.0)

    assert "signature" in await refusal(issuer, server.token(key=new_key(), header={"kid": server.keys[0].kid}))
    assert server.readings == 1


async def test_tokens_that_are_not_for_us_make_nobody_ask_the_server(
    server: AuthorizationServer, issuer: Issuer, monkeypatch: pytest.MonkeyPatch
) -> None:
    await issuer.verify(server.token())
    monkeypatch.setattr(module, "COOL_DOWN", 0.0)
    stranger = new_key()

    claims: list[dict[str, Any]] = [{"iss": "https://else.example"}, {"aud": "https://else.example"}, {"exp": 1}]
    for each in claims:
        assert await refusal(issuer, server.token(key=stranger, **each))
    assert server.readings == 1


# A server that fails


@pytest.mark.parametrize("failure", ["it never answers", "it answers 500", "its keys are no keys"])
async def test_the_last_good_keys_stay_good_while_the_server_fails(
    server: AuthorizationServer, issuer: Issuer, impatient: None, monkeypatch: pytest.MonkeyPatch, failure: str
) -> None:
    await issuer.verify(server.token())
    monkeypatch.setattr(jwks, "TIMEOUT", 0.3)
    await FAILURES[failure][0](server)

    with capture_logs() as logs:
        assert await issuer.verify(server.token(sub="ben"))

        async def has_failed() -> bool:
            return bool(logs)

        await eventually(has_failed)
    assert await issuer.verify(server.token(sub="cal"))
    assert "signature" in await refusal(issuer, server.token(key=new_key(), header={"kid": server.keys[0].kid}))


async def test_a_key_nobody_can_be_asked_about_is_not_called_wrong(
    server: AuthorizationServer, issuer: Issuer, impatient: None
) -> None:
    await issuer.verify(server.token())
    server.rotate()
    server.fail()
    token = server.token()

    await is_unavailable(issuer, token)
    server.recover()
    assert await issuer.verify(token)


async def test_the_last_good_keys_are_not_good_for_ever(
    server: AuthorizationServer, issuer: Issuer, impatient: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    token = server.token()
    await issuer.verify(token)
    server.fail()
    monkeypatch.setattr(module, "LAST_GOOD", -1.0)

    await is_unavailable(issuer, token)


async def test_a_server_that_fails_is_left_alone_for_a_while(server: AuthorizationServer, issuer: Issuer) -> None:
    server.fail()
    for _ in range(5):
        await is_unavailable(issuer, server.token())
    asked = server.asked.total()
    server.recover()

    await is_unavailable(issuer, server.token())
    assert server.asked.total() == asked <= 2


async def test_a_caller_who_goes_away_leaves_the_reading_to_those_who_wait(
    server: AuthorizationServer, issuer: Issuer
) -> None:
    server.fall_silent()

    async def is_asked() -> bool:
        return server.asked.total() > 0

    leaving, waiting = [asyncio.create_task(issuer.verify(server.token())) for _ in range(2)]
    await eventually(is_asked)
    leaving.cancel()
    await asyncio.wait([leaving])
    server.recover()

    assert (await waiting).subject == "ann"
    assert server.readings == 1


async def test_a_reading_that_is_given_up_leaves_nothing_behind(server: AuthorizationServer, issuer: Issuer) -> None:
    server.fall_silent()

    async def is_asked() -> bool:
        return server.asked.total() > 0

    before = asyncio.all_tasks()
    waiting = asyncio.create_task(is_unavailable(issuer, server.token()))
    await eventually(is_asked)
    issuer.close()
    await waiting

    ours = {task for task in asyncio.all_tasks() - before if task.get_name().startswith("keys of")}
    assert ours == set()
