"""Tokens with an unknown key: when the keys are read again, and with how few requests."""

import asyncio
from typing import Any

import pytest
from structlog.testing import capture_logs

from holdfast.events.oauth import issuer as module
from holdfast.events.oauth.issuer import MIN_READ_INTERVAL_SECONDS, NEW_KEY_TIMEOUT_SECONDS, Issuer
from holdfast.kit.security.signed_tokens import REGISTRY
from tests.events.oauth.authorization_server import AuthorizationServer, new_key
from tests.events.oauth.outcomes import is_not_believed, refusal


async def test_made_up_keys_cause_few_requests_to_the_authorization_server(
    server: AuthorizationServer, issuer: Issuer, monkeypatch: pytest.MonkeyPatch
) -> None:
    await issuer.verify(server.token())
    strangers = [new_key() for _ in range(10)]
    made_up = [server.token(key=key, header={"kid": kid}) for key in strangers for kid in (key.kid, None)]

    monkeypatch.setattr(module, "MIN_READ_INTERVAL_SECONDS", 0.2)
    for readings in (2, 3):
        refusals = await asyncio.gather(*(refusal(issuer, token) for token in made_up))
        assert all("key is not known" in message for message in refusals)
        assert server.readings == readings


async def test_a_token_with_an_unknown_key_is_invalid_if_the_keys_cannot_be_read_in_time(
    server: AuthorizationServer, issuer: Issuer, monkeypatch: pytest.MonkeyPatch
) -> None:
    await issuer.verify(server.token())
    monkeypatch.setattr(module, "NEW_KEY_TIMEOUT_SECONDS", 0.05)
    made_up = server.token(key=new_key())

    for _ in range(3):
        assert "key is not known" in await refusal(issuer, made_up)
    assert server.readings == 1


async def test_good_tokens_are_verified_while_others_wait(
    server: AuthorizationServer, issuer: Issuer, monkeypatch: pytest.MonkeyPatch
) -> None:
    await issuer.verify(server.token())
    server.fall_silent()
    monkeypatch.setattr(module, "MIN_READ_INTERVAL_SECONDS", 0.0)
    waiting = [asyncio.create_task(refusal(issuer, server.token(key=new_key()))) for _ in range(100)]
    await asyncio.sleep(0)

    for number in range(5):
        assert (await issuer.verify(server.token(sub=f"ann-{number}"))).subject == f"ann-{number}"
    assert not any(task.done() for task in waiting)
    server.recover()
    assert {*await asyncio.gather(*waiting)} == {"The access token's key is not known."}


async def test_a_token_with_a_new_key_is_accepted_although_keys_were_just_read(
    server: AuthorizationServer, issuer: Issuer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MIN_READ_INTERVAL_SECONDS", 0.2)
    await issuer.verify(server.token())
    assert "key is not known" in await refusal(issuer, server.token(key=new_key()))
    server.keys.insert(0, new_key())

    claims = await asyncio.gather(*(issuer.verify(server.token(sub=f"ann-{number}")) for number in range(5)))

    assert len({token_claims.subject for token_claims in claims}) == 5
    assert server.readings == 3


def test_a_token_waits_longer_than_the_pause_between_two_reads_of_keys() -> None:
    assert MIN_READ_INTERVAL_SECONDS < NEW_KEY_TIMEOUT_SECONDS <= 2


@pytest.fixture
def key_trials(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """A list that has an entry for every key that a signature was tried with."""
    tried: list[str] = []
    algorithm = type(REGISTRY.get_alg("ES256"))
    verify = algorithm.verify

    def counting(self: Any, message: bytes, signature: bytes, key: Any) -> bool:
        tried.append(key.kid)
        return verify(self, message, signature, key)

    monkeypatch.setattr(algorithm, "verify", counting)
    return tried


async def test_a_forged_token_is_tried_with_each_key_once(
    server: AuthorizationServer, issuer: Issuer, key_trials: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    server.keys += [new_key() for _ in range(4)]
    await issuer.verify(server.token())
    key_trials.clear()
    forged = server.token(key=new_key(), header={"kid": None})

    monkeypatch.setattr(module, "MIN_READ_INTERVAL_SECONDS", 0.0)  # the server is asked, and has the same keys
    await refusal(issuer, forged)
    assert len(key_trials) == 5
    assert server.readings == 2


async def test_a_limited_number_of_keys_is_used(
    server: AuthorizationServer, issuer: Issuer, key_trials: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    used = [new_key() for _ in range(module.MAX_KEYS)]
    surplus = new_key()
    encrypting = [{**new_key().as_dict(private=False), "use": "enc"} for _ in range(module.MAX_KEYS)]
    server.jwks = [{}, *encrypting, *(key.as_dict(private=False) for key in (*used, surplus))]

    with capture_logs() as logs:
        await issuer.verify(server.token(key=used[-1]))
    monkeypatch.setattr(module, "NEW_KEY_TIMEOUT_SECONDS", 0.05)
    assert [entry["event"] for entry in logs] == ["the authorization server has more keys than are used"]
    await is_not_believed(issuer, server.token(key=surplus))
    key_trials.clear()
    await is_not_believed(issuer, server.token(key=new_key(), header={"kid": None}))
    assert len(key_trials) == module.MAX_KEYS


async def test_a_wrong_signature_by_a_known_key_causes_no_request_to_the_server(
    server: AuthorizationServer, issuer: Issuer, monkeypatch: pytest.MonkeyPatch
) -> None:
    await issuer.verify(server.token())
    monkeypatch.setattr(module, "MIN_READ_INTERVAL_SECONDS", 0.0)

    assert "signature" in await refusal(issuer, server.token(key=new_key(), header={"kid": server.keys[0].kid}))
    assert server.readings == 1


async def test_a_token_for_another_audience_causes_no_request_to_the_server(
    server: AuthorizationServer, issuer: Issuer, monkeypatch: pytest.MonkeyPatch
) -> None:
    await issuer.verify(server.token())
    monkeypatch.setattr(module, "MIN_READ_INTERVAL_SECONDS", 0.0)
    stranger = new_key()

    claims: list[dict[str, Any]] = [{"iss": "https://else.example"}, {"aud": "https://else.example"}, {"exp": 1}]
    for wrong_claims in claims:
        assert await refusal(issuer, server.token(key=stranger, **wrong_claims))
    assert server.readings == 1
