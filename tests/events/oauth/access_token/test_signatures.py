"""A signature counts when a published key with a key pair made it, by that key's own algorithm."""

import json
from base64 import urlsafe_b64decode
from typing import Any

import pytest
from joserfc.jwk import ECKey, Key, OctKey, OKPKey, RSAKey

from holdfast.events.oauth.issuer import Issuer
from tests.events.oauth.authorization_server import AUDIENCE, AuthorizationServer, encode_part, new_key, rsa_key
from tests.events.oauth.outcomes import is_not_believed, refusal

pytestmark = pytest.mark.asyncio(loop_scope="module")

KEYS: list[tuple[str, Any]] = [
    *((f"{family}{size}", rsa_key()) for family in ("RS", "PS") for size in (256, 384, 512)),
    ("ES256", ECKey.generate_key("P-256", {"kid": "p256"})),
    ("ES384", ECKey.generate_key("P-384", {"kid": "p384"})),
    ("ES512", ECKey.generate_key("P-521", {"kid": "p521"})),
    ("EdDSA", OKPKey.generate_key("Ed25519", {"kid": "ed"})),
    ("Ed25519", OKPKey.generate_key("Ed25519", {"kid": "ed"})),
]


@pytest.mark.parametrize(("algorithm", "key"), KEYS, ids=[algorithm for algorithm, _ in KEYS])
async def test_every_asymmetric_algorithm_is_accepted(
    server: AuthorizationServer, issuer: Issuer, algorithm: str, key: Any
) -> None:
    server.keys.append(key)
    stranger = key.generate_key(getattr(key, "curve_name", 2048), {"kid": key.kid})

    assert (await issuer.verify(server.token(key=key, header={"alg": algorithm}))).subject == "ann"
    forged = server.token(key=stranger, header={"alg": algorithm})
    assert "signature" in await refusal(issuer, forged)


async def test_a_token_without_a_signature_is_refused(server: AuthorizationServer, issuer: Issuer) -> None:
    header, claims, signature = server.token().split(".")
    none = encode_part({"alg": "none", "typ": "at+jwt"})

    for token in (f"{none}.{claims}.", f"{none}.{claims}", f"{none}.{claims}.{signature}", f"{header}.{claims}."):
        assert await refusal(issuer, token)
    assert server.readings <= 1


@pytest.mark.parametrize("algorithm", ["HS256", "HS384", "HS512"])
async def test_a_public_key_used_as_a_shared_secret_is_refused(
    server: AuthorizationServer, issuer: Issuer, algorithm: str
) -> None:
    server.keys.append(rsa_key())
    public = json.dumps(rsa_key().as_dict(private=False)).encode()
    for secret in (rsa_key().as_pem(private=False), rsa_key().as_der(private=False), public):
        shared = OctKey(secret, secret)
        token = server.token(key=shared, header={"alg": algorithm, "kid": rsa_key().kid})
        assert "not accepted" in await refusal(issuer, token)


async def test_a_published_shared_secret_is_refused_as_a_key(server: AuthorizationServer, issuer: Issuer) -> None:
    secret = OctKey.generate_key(256, {"kid": "shared"})
    server.jwks = [server.keys[0].as_dict(private=False), secret.as_dict(private=True)]

    assert await refusal(issuer, server.token(key=secret, header={"alg": "HS256"}))
    assert await issuer.verify(server.token())


async def test_a_key_verifies_its_own_algorithm_only(server: AuthorizationServer, issuer: Issuer) -> None:
    key = RSAKey.import_key({**rsa_key().as_dict(private=True), "alg": "PS256", "kid": "ps"})
    server.keys.append(key)

    assert await issuer.verify(server.token(key=key, header={"alg": "PS256"}))
    unmarked = RSAKey.import_key({**rsa_key().as_dict(private=True), "kid": "ps"})
    assert "signature" in await refusal(issuer, server.token(key=unmarked, header={"alg": "RS256"}))


@pytest.mark.parametrize("marked", [{"use": "enc"}, {"key_ops": ["sign"]}, {"use": "enc", "key_ops": ["encrypt"]}])
async def test_a_key_that_is_not_for_verifying_signatures_is_refused(
    server: AuthorizationServer, issuer: Issuer, marked: dict[str, Any]
) -> None:
    key = ECKey.generate_key("P-256", {"kid": "other"})
    server.jwks = [{**key.as_dict(private=False), **marked}]

    assert await refusal(issuer, server.token(key=key))
    server.jwks = [{**key.as_dict(private=False), "use": "sig", "key_ops": ["verify"]}]
    assert await Issuer(server.issuer, AUDIENCE).verify(server.token(key=key))


@pytest.mark.filterwarnings("ignore:Key size")
async def test_a_key_that_is_too_short_is_refused(server: AuthorizationServer, issuer: Issuer) -> None:
    server.keys.append(rsa_key(1024))

    assert await refusal(issuer, server.token(key=rsa_key(1024), header={"alg": "RS256"}))
    assert await issuer.verify(server.token())


async def test_keys_that_cannot_be_read_do_not_spoil_the_others(server: AuthorizationServer, issuer: Issuer) -> None:
    good = server.keys[0].as_dict(private=False)
    server.jwks = [
        {},
        {"kty": "AKP", "alg": "ML-DSA-44", "pub": "AAAA", "kid": "later"},
        {"kty": ["EC"]},
        {"kty": "EC", "crv": "P-999", "x": "AA", "y": "AA"},
        {**good, "x": 7},
        {**good, "x": "="},
        {**good, "y": good["x"]},
        {**good, "use": "tls"},
        {"kty": "RSA", "n": "", "e": "AQAB"},
        {"kty": "OKP", "crv": "Ed25519", "x": "AAAA"},
        good,
    ]

    assert (await issuer.verify(server.token())).subject == "ann"


async def test_without_a_key_id_the_keys_that_fit_are_tried(
    server: AuthorizationServer, issuer: Issuer, impatient: None
) -> None:
    server.keys += [rsa_key(), new_key(), new_key()]

    for key in server.keys:
        header = {"kid": None, "alg": "RS256" if key is rsa_key() else "ES256"}
        assert (await issuer.verify(server.token(key=key, header=header))).subject == "ann"
    await refusal(issuer, server.token(key=new_key(), header={"kid": None}))


async def test_a_key_in_the_header_of_a_token_is_ignored(server: AuthorizationServer, issuer: Issuer) -> None:
    stranger = new_key()
    public = stranger.as_dict(private=False)
    for header in (
        {"jwk": public},
        {"jwk": {**public, "kid": server.keys[0].kid}, "kid": server.keys[0].kid},
        {"jku": f"{server.origin}/strangers"},
        {"x5u": f"{server.origin}/strangers"},
        {"x5c": ["AAAA"], "kid": server.keys[0].kid},
    ):
        await is_not_believed(issuer, server.token(key=stranger, header=header))
        await is_not_believed(issuer, server.token(key=stranger, header={**header, "kid": None}))
    assert server.requests["/strangers"] == 0


async def test_the_authorization_server_of_the_tests_signs_the_given_claims(server: AuthorizationServer) -> None:
    header, claims, _ = (part + "==" for part in server.token(scp=["x"], nbf=None).split("."))
    key: Key = server.keys[0]

    assert json.loads(urlsafe_b64decode(header)) == {"alg": "ES256", "typ": "at+jwt", "kid": key.kid}
    assert {"iss", "aud", "sub", "exp", "iat", "scope", "scp"} == json.loads(urlsafe_b64decode(claims)).keys()
