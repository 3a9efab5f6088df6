"""Release tokens: one for each released visitor, valid only with their signature."""

import asyncio
import hmac
import json
from base64 import urlsafe_b64encode
from typing import Any

import pytest
from joserfc import jws, jwt
from joserfc.jwk import ECKey, KeySet, RSAKey

from holdfast.events.queues import release_tokens
from holdfast.kit.security.signed_tokens import SIGNING_DELAY_SECONDS
from tests.events.queues.queue_scene import QueueScene, open_queue
from tests.helpers.events_service import Service, running_events


@pytest.fixture
async def released_queue(queue: QueueScene) -> QueueScene:
    """A queue from which Ann was released."""
    await queue.join("ann", "ben")
    await queue.tick()
    return queue


async def published_keys(service: Service) -> KeySet:
    answer = await service.http.get("/.well-known/queue-jwks.json")
    assert answer.headers["cache-control"] == "public, max-age=300"
    assert answer.headers["access-control-allow-origin"] == "*"
    return KeySet.import_key_set(answer.json())


def header_of(token: str) -> dict[str, Any]:
    return dict(jws.extract_compact(token.encode()).headers())


async def reason(queue: QueueScene, token: str, **options: Any) -> str:
    """Why a token is refused."""
    answer = await queue.verify(token, **options)
    body = answer.json()
    assert (answer.status_code, body["valid"], body["code"]) == (401, False, "invalid_token")
    assert body["error"]
    assert body["hint"]
    return body["reason"]


async def test_a_released_visitor_gets_a_token_and_a_redirect_url(released_queue: QueueScene) -> None:
    status = await released_queue.status("ann")

    assert list(status) == ["status", "reason", "token", "token_expires_at", "redirect_url"]
    assert (status["status"], status["reason"]) == ("not_in_queue", "released")
    assert status["redirect_url"] == f"https://shop.example/sale?queue_token={status['token']}"


async def test_a_visitor_who_waits_or_never_joined_gets_no_token(released_queue: QueueScene) -> None:
    assert await released_queue.status("ben") == {"status": "waiting", "position": 1, "estimated_wait_seconds": 1}
    assert await released_queue.status("cal") == {"status": "not_in_queue"}


async def test_a_token_says_who_may_come_in_where_and_until_when(released_queue: QueueScene, service: Service) -> None:
    status = await released_queue.status("ann")

    header = header_of(status["token"])
    claims = jwt.decode(status["token"], await published_keys(service), ["RS256"]).claims
    assert (header["alg"], header["typ"]) == ("RS256", "queue-release+jwt")
    assert claims["iss"] == "http://events.test"
    assert claims["aud"] == [f"queue:{released_queue.id}", "https://shop.example"]
    assert (claims["sub"], claims["qid"], claims["org"], claims["tkt"]) == (
        "ann",
        released_queue.id,
        released_queue.ada.id,
        1,
    )
    assert claims["exp"] == claims["iat"] + 600
    assert claims["nbf"] == claims["iat"]


async def test_a_token_fetched_again_is_the_same_and_is_not_prolonged(
    released_queue: QueueScene, service: Service
) -> None:
    token = await released_queue.token("ann")
    async with running_events(service.database.resources.settings) as other:
        other_client = type(released_queue.ada)(other.http, released_queue.ada.key)
        again = (await other_client.get(f"{released_queue.path}/status/ann")).json()["token"]

    assert again == token == await released_queue.token("ann")


async def test_a_rotation_changes_no_token_that_was_picked_up(released_queue: QueueScene, service: Service) -> None:
    token = await released_queue.token("ann")
    await service.run_sql("update queue_signing_keys set inserted_at = inserted_at - interval '1 day'")
    await service.database.transact(release_tokens.rotate_queue_keys)
    await service.run_sql(
        "update queue_signing_keys set inserted_at = inserted_at - %(age)s * interval '1 second'",
        age=SIGNING_DELAY_SECONDS + 1,
    )
    # What was picked up since then belongs to the new key.
    await service.run_sql(
        "update queue_visitors set issued_at = issued_at - interval '1 hour' where visitor_id = 'ann'"
    )
    await service.run_sql("update queue_visitors set expires_at = expires_at + interval '1 hour'")
    await released_queue.tick()

    old, new = await released_queue.token("ann"), await released_queue.token("ben")
    assert header_of(old)["kid"] == header_of(token)["kid"] != header_of(new)["kid"]
    keys = await published_keys(service)
    for signed_token in (old, new):
        jwt.decode(signed_token, keys, ["RS256"])
        assert (await released_queue.verify(signed_token)).status_code == 200


async def test_a_token_is_picked_up_in_time_or_the_turn_is_missed(released_queue: QueueScene) -> None:
    await released_queue.pass_time(590)
    token = _claims(await released_queue.token("ann"))["jti"]
    await released_queue.pass_time(590)

    assert _claims(await released_queue.token("ann"))["jti"] == token
    await released_queue.pass_time(20)
    assert await released_queue.status("ann") == {"status": "not_in_queue"}


@pytest.mark.parametrize("token", ["", "x" * 8_001, "x" * 100_000, "a.b.c", "ä"], ids=len)
async def test_a_text_that_is_no_token_has_an_invalid_signature(released_queue: QueueScene, token: str) -> None:
    assert await reason(released_queue, token) == "signature"


async def test_a_verified_token_shows_its_claims_and_how_often_it_was_verified(released_queue: QueueScene) -> None:
    token = await released_queue.token("ann")

    first, second = [(await released_queue.verify(token)).json() for _ in range(2)]

    assert first["valid"] is True
    data = first["data"]
    assert (data["queue_id"], data["visitor_id"], data["target_url"]) == (
        released_queue.id,
        "ann",
        "https://shop.example/sale",
    )
    assert (data["use_count"], data["first_use"]) == (1, True)
    assert (second["data"]["use_count"], second["data"]["first_use"]) == (2, False)
    assert data["expires_at"] == (await released_queue.status("ann"))["token_expires_at"]


async def test_a_token_that_is_consumed_is_valid_once(released_queue: QueueScene) -> None:
    token = await released_queue.token("ann")

    assert (await released_queue.verify(token)).status_code == 200
    assert (await released_queue.verify(token, consume=True)).status_code == 200
    assert await reason(released_queue, token) == "used"
    assert await reason(released_queue, token, consume=True) == "used"


async def test_a_token_consumed_many_times_at_once_is_accepted_once(released_queue: QueueScene) -> None:
    token = await released_queue.token("ann")
    answers = await asyncio.gather(*(released_queue.verify(token, consume=True) for _ in range(20)))

    assert sorted(answer.status_code for answer in answers) == [200] + [401] * 19


async def test_an_expired_token_is_refused(released_queue: QueueScene, service: Service) -> None:
    token = await released_queue.token("ann")
    key = await _signing_key(service)
    claims = jwt.decode(token, key, ["RS256"]).claims
    late = {**claims, "iat": claims["iat"] - 700, "nbf": claims["iat"] - 700, "exp": claims["exp"] - 700}

    assert await reason(released_queue, jwt.encode(header_of(token), late, key, ["RS256"])) == "expired"


async def test_a_token_of_a_deleted_queue_or_of_a_place_given_up_is_revoked(
    released_queue: QueueScene, service: Service
) -> None:
    token = await released_queue.token("ann")
    await service.run_sql("update queue_visitors set token_id = 'another' where visitor_id = 'ann'")
    assert await reason(released_queue, token) == "revoked"

    restore = "update queue_visitors set token_id = %(id)s where visitor_id = 'ann'"
    await service.run_sql(restore, id=_claims(token)["jti"])
    assert (await released_queue.verify(token)).status_code == 200
    await released_queue.ada.delete(released_queue.path)
    assert await reason(released_queue, token) == "revoked"


async def test_a_token_of_another_organizer_tells_nothing(released_queue: QueueScene, service: Service) -> None:
    token = await released_queue.token("ann")
    eve = await open_queue(service)

    assert await reason(eve, token) == "audience"
    await released_queue.verify(token, consume=True)
    assert await reason(eve, token) == "audience"
    await released_queue.ada.delete(released_queue.path)
    assert await reason(eve, token) == "audience"


async def test_an_admin_verifies_tokens_of_every_queue(released_queue: QueueScene, service: Service) -> None:
    answer = await released_queue.verify(await released_queue.token("ann"), await service.admin())

    assert answer.json()["data"]["visitor_id"] == "ann"


async def test_a_token_with_a_wrong_signature_or_header_is_refused(
    released_queue: QueueScene, service: Service, subtests: pytest.Subtests
) -> None:
    token = await released_queue.token("ann")
    key = await _signing_key(service)
    header, claims = header_of(token), dict(jwt.decode(token, key, ["RS256"]).claims)
    stranger, pss = RSAKey.generate_key(2048), RSAKey.import_key(key.as_pem(private=True))

    def sign(header: dict[str, Any], key: RSAKey = key, **changes: Any) -> str:
        changed = {name: value for name, value in {**claims, **changes}.items() if value is not None}
        registry = jws.JWSRegistry(algorithms=["RS256", "PS256"], strict_check_header=False)
        return jws.serialize_compact(header, json.dumps(changed), key, registry=registry)

    def hmac_by(secret: bytes) -> str:
        signed = f"{encoded_json({**header, 'alg': 'HS256'})}.{encoded_json(claims)}"
        return f"{signed}.{_b64(hmac.digest(secret, signed.encode(), 'sha256'))}"

    assert (await released_queue.verify(sign(header))).status_code == 200
    unsigned = f"{encoded_json({**header, 'alg': 'none'})}.{encoded_json(claims)}"
    forged = {
        "nothing": " ",
        "no token": "a.b.c",
        "none": f"{unsigned}.",
        "none, with a signature": f"{unsigned}.{token.rpartition('.')[2]}",
        "HS256 by the public key, PEM": hmac_by(key.as_pem(private=False)),
        "HS256 by the public key, JWK": hmac_by(json.dumps(key.as_dict(private=False)).encode()),
        "PS256": sign({**header, "alg": "PS256"}, pss),
        "the plain type": sign({**header, "typ": "JWT"}),
        "the type of access tokens": sign({**header, "typ": "at+jwt"}),
        "no type": sign({"alg": "RS256", "kid": key.kid}),
        "no key": sign({"alg": "RS256", "typ": "queue-release+jwt"}),
        "another key": sign(header, stranger),
        "a key of its own": sign({**header, "jwk": stranger.as_dict(private=False)}, stranger),
        "a key elsewhere": sign({**header, "jku": "https://evil.example/jwks.json"}, stranger),
        "an unknown key": sign({**header, "kid": "x"}, stranger),
        "a cut": token[:-1],
        "more": f"{token}A",
        "other claims": ".".join((token.split(".")[0], encoded_json({**claims, "sub": "eve"}), token.split(".")[2])),
        "another issuer": sign(header, iss="https://evil.example"),
        "another queue": sign(header, aud=["queue:4711", "https://shop.example"]),
        "another queue's number": sign(header, qid=4711),
        "another organizer": sign(header, org=4711),
        "another visitor": sign(header, sub="eve"),
        "no visitor": sign(header, sub=None),
        "no expiry": sign(header, exp=None),
        "an expiry in words": sign(header, exp="tomorrow"),
        "another curve": jwt.encode({**header, "alg": "ES256"}, claims, ECKey.generate_key("P-256"), ["ES256"]),
    }
    for name, forgery in forged.items():
        with subtests.test(forgery=name):
            assert await reason(released_queue, forgery) in {"signature", "audience", "revoked"}


async def test_a_request_to_verify_without_a_token_is_refused_by_name(queue: QueueScene) -> None:
    for body in ({}, {"token": 7}, {"token": None}, {"token": "x", "queue": 1}):
        answer = await queue.ada.post("/api/queues/verify_token", body)
        assert (answer.status_code, answer.json()["code"]) == (422, "validation_failed")


@pytest.mark.parametrize(
    ("target", "expected"),
    [
        ("https://shop.example", "https://shop.example?queue_token=T"),
        ("https://shop.example/sale?a=1", "https://shop.example/sale?a=1&queue_token=T"),
        ("https://shop.example/sale?", "https://shop.example/sale?queue_token=T"),
        ("https://shop.example/sale?a=1&", "https://shop.example/sale?a=1&queue_token=T"),
        ("https://shop.example/sale#top", "https://shop.example/sale?queue_token=T#top"),
        ("https://shop.example/sale?a=1#/b?c", "https://shop.example/sale?a=1&queue_token=T#/b?c"),
        ("https://shop.example/caf\u00e9?q=%20", "https://shop.example/caf%C3%A9?q=%20&queue_token=T"),
    ],
)
def test_the_token_is_added_to_the_query_of_the_target(target: str, expected: str) -> None:
    assert release_tokens.with_token(target, "T") == expected


@pytest.mark.parametrize(
    ("url", "origin"),
    [
        ("https://shop.example/sale", "https://shop.example"),
        ("https://Shop.Example:443/", "https://shop.example"),
        ("http://127.0.0.1:8080/x", "http://127.0.0.1:8080"),
        ("http://[::1]:80/", "http://[::1]"),
    ],
)
def test_the_audience_is_the_origin_of_the_target(url: str, origin: str) -> None:
    assert release_tokens.origin(url) == origin


async def _signing_key(service: Service) -> RSAKey:
    ((sealed,),) = await service.run_sql("select sealed from queue_signing_keys")
    return RSAKey.import_key(json.loads(service.database.resources.secret.unseal(sealed)))


def _claims(token: str) -> dict[str, Any]:
    return json.loads(jws.extract_compact(token.encode()).payload or b"")


def _b64(content: bytes) -> str:
    return urlsafe_b64encode(content).rstrip(b"=").decode()


def encoded_json(content: Any) -> str:
    return _b64(json.dumps(content).encode())
