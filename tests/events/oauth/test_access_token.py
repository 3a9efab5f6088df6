"""Access tokens: what is believed, and why anything else is not."""

import json
import time
from base64 import urlsafe_b64decode
from collections.abc import AsyncIterator
from functools import cache
from typing import Any

import pytest
import pytest_asyncio
from hypothesis import HealthCheck, given
from hypothesis import settings as hypothesis
from hypothesis import strategies as st
from joserfc.jwk import ECKey, Key, OctKey, OKPKey, RSAKey

from holdfast.events.oauth.access_token import LEEWAY
from holdfast.events.oauth.issuer import Issuer
from holdfast.events.oauth.model import SCOPES
from holdfast.kit.signing import InvalidToken
from tests.events.oauth.authorization_server import (
    AUDIENCE,
    AuthorizationServer,
    authorization_server,
    encoded,
    new_key,
    signed,
)
from tests.events.oauth.outcomes import is_not_believed, is_unavailable, refusal

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def shared_server() -> AsyncIterator[AuthorizationServer]:
    async with authorization_server() as server:
        yield server


@pytest.fixture
def server(shared_server: AuthorizationServer) -> AuthorizationServer:
    """The same for all tests here, since starting and stopping one takes longer than most of them."""
    shared_server.begin_anew()
    return shared_server


class Clock:
    """One that stands still until it is moved."""

    def __init__(self) -> None:
        self.now = float(int(time.time()))

    def __call__(self) -> float:
        return self.now


@cache
def rsa_key(size: int = 2048) -> RSAKey:
    return RSAKey.generate_key(size, {"kid": f"rsa-{size}"})


async def test_a_token_says_whose_it_is_and_what_it_may_do(server: AuthorizationServer, issuer: Issuer) -> None:
    expires_at = int(time.time()) + 60
    token = server.token(exp=expires_at, email="Ann@Example.com", email_verified=True, scope="read_events openid")

    claims = await issuer.verify(token)

    assert (claims.subject, claims.scopes) == ("ann", {"read_events"})
    assert (claims.email, claims.expires_at) == ("ann@example.com", expires_at)


# Signatures


KEYS: list[tuple[str, Any]] = [
    *((f"{family}{size}", rsa_key()) for family in ("RS", "PS") for size in (256, 384, 512)),
    ("ES256", ECKey.generate_key("P-256", {"kid": "p256"})),
    ("ES384", ECKey.generate_key("P-384", {"kid": "p384"})),
    ("ES512", ECKey.generate_key("P-521", {"kid": "p521"})),
    ("EdDSA", OKPKey.generate_key("Ed25519", {"kid": "ed"})),
    ("Ed25519", OKPKey.generate_key("Ed25519", {"kid": "ed"})),
]


@pytest.mark.parametrize(("algorithm", "key"), KEYS, ids=[algorithm for algorithm, _ in KEYS])
async def test_every_algorithm_with_a_key_pair_is_good(
    server: AuthorizationServer, issuer: Issuer, algorithm: str, key: Any
) -> None:
    server.keys.append(key)
    stranger = key.generate_key(getattr(key, "curve_name", 2048), {"kid": key.kid})

    assert (await issuer.verify(server.token(key=key, header={"alg": algorithm}))).subject == "ann"
    forged = server.token(key=stranger, header={"alg": algorithm})
    assert "signature" in await refusal(issuer, forged)


async def test_a_token_without_a_signature_is_refused(server: AuthorizationServer, issuer: Issuer) -> None:
    header, claims, signature = server.token().split(".")
    none = encoded({"alg": "none", "typ": "at+jwt"})

    for token in (f"{none}.{claims}.", f"{none}.{claims}", f"{none}.{claims}.{signature}", f"{header}.{claims}."):
        assert await refusal(issuer, token)
    assert server.readings <= 1


@pytest.mark.parametrize("algorithm", ["HS256", "HS384", "HS512"])
async def test_a_public_key_is_no_shared_secret(server: AuthorizationServer, issuer: Issuer, algorithm: str) -> None:
    server.keys.append(rsa_key())
    public = json.dumps(rsa_key().as_dict(private=False)).encode()
    for secret in (rsa_key().as_pem(private=False), rsa_key().as_der(private=False), public):
        shared = OctKey(secret, secret)
        token = server.token(key=shared, header={"alg": algorithm, "kid": rsa_key().kid})
        assert "not accepted" in await refusal(issuer, token)


async def test_a_shared_secret_that_is_published_is_no_key(server: AuthorizationServer, issuer: Issuer) -> None:
    secret = OctKey.generate_key(256, {"kid": "shared"})
    server.jwks = [server.keys[0].as_dict(private=False), secret.as_dict(private=True)]

    assert await refusal(issuer, server.token(key=secret, header={"alg": "HS256"}))
    assert await issuer.verify(server.token())


async def test_the_algorithm_is_the_keys(server: AuthorizationServer, issuer: Issuer) -> None:
    key = RSAKey.import_key({**rsa_key().as_dict(private=True), "alg": "PS256", "kid": "ps"})
    server.keys.append(key)

    assert await issuer.verify(server.token(key=key, header={"alg": "PS256"}))
    unmarked = RSAKey.import_key({**rsa_key().as_dict(private=True), "kid": "ps"})
    assert "signature" in await refusal(issuer, server.token(key=unmarked, header={"alg": "RS256"}))


@pytest.mark.parametrize("marked", [{"use": "enc"}, {"key_ops": ["sign"]}, {"use": "enc", "key_ops": ["encrypt"]}])
async def test_a_key_that_is_not_for_signatures_verifies_none(
    server: AuthorizationServer, issuer: Issuer, marked: dict[str, Any]
) -> None:
    key = ECKey.generate_key("P-256", {"kid": "other"})
    server.jwks = [{**key.as_dict(private=False), **marked}]

    assert await refusal(issuer, server.token(key=key))
    server.jwks = [{**key.as_dict(private=False), "use": "sig", "key_ops": ["verify"]}]
    assert await Issuer(server.issuer, AUDIENCE).verify(server.token(key=key))


@pytest.mark.filterwarnings("ignore:Key size")
async def test_a_key_that_is_too_short_verifies_nothing(server: AuthorizationServer, issuer: Issuer) -> None:
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


async def test_without_a_key_id_the_keys_that_fit_are_tried(server: AuthorizationServer, issuer: Issuer) -> None:
    server.keys += [rsa_key(), new_key(), new_key()]

    for key in server.keys:
        header = {"kid": None, "alg": "RS256" if key is rsa_key() else "ES256"}
        assert (await issuer.verify(server.token(key=key, header=header))).subject == "ann"
    await is_unavailable(issuer, server.token(key=new_key(), header={"kid": None}))


async def test_a_token_brings_no_keys_along(server: AuthorizationServer, issuer: Issuer) -> None:
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
    assert server.asked["/strangers"] == 0


# Headers


@pytest.mark.parametrize("typ", ["at+jwt", "application/at+jwt", "AT+JWT", "JWT", "jwt", None])
async def test_access_tokens_go_by_these_types(server: AuthorizationServer, issuer: Issuer, typ: str | None) -> None:
    assert await issuer.verify(server.token(header={"typ": typ}))


@pytest.mark.parametrize("typ", ["logout+jwt", "secevent+jwt", "oauth-id-jag+jwt", "dpop+jwt", "", "at+jwt "])
async def test_tokens_of_another_type_are_none(server: AuthorizationServer, issuer: Issuer, typ: str) -> None:
    assert "not an access token" in await refusal(issuer, server.token(header={"typ": typ}))


async def test_what_is_critical_and_unknown_is_refused(server: AuthorizationServer, issuer: Issuer) -> None:
    headers: list[dict[str, Any]] = [{"crit": ["exp"], "exp": 1}, {"crit": ["b64"], "b64": False}, {"crit": []}]
    for header in headers:
        assert "extension" in await refusal(issuer, server.token(header=header))


# Claims


@pytest.mark.parametrize("other", ["", "/", "x", ".evil.example"])
async def test_the_issuer_is_compared_to_the_letter(server: AuthorizationServer, issuer: Issuer, other: str) -> None:
    assert "another issuer" in await refusal(issuer, server.token(iss=server.issuer.upper() + other))


@pytest.mark.parametrize("audience", [AUDIENCE, [AUDIENCE], ["https://else.example", AUDIENCE]])
async def test_a_token_may_be_for_others_too(server: AuthorizationServer, issuer: Issuer, audience: Any) -> None:
    assert await issuer.verify(server.token(aud=audience))


@pytest.mark.parametrize(
    "audience",
    [
        "",
        [],
        f"{AUDIENCE}/",
        AUDIENCE[:-1],
        "http://events.test",
        ["https://else.example"],
        [[AUDIENCE]],
        {AUDIENCE: 1},
        7,
    ],
)
async def test_a_token_for_somebody_else_is_refused(server: AuthorizationServer, issuer: Issuer, audience: Any) -> None:
    assert await refusal(issuer, server.token(aud=audience))


@pytest.mark.parametrize("claim", ["iss", "aud", "sub", "exp"])
async def test_a_token_lacks_none_of_these(server: AuthorizationServer, issuer: Issuer, claim: str) -> None:
    assert await refusal(issuer, server.token(**{claim: None})) == f"The access token lacks the claim {claim}."


@pytest.mark.parametrize(
    ("claim", "value"),
    [
        *(("iss", 7), ("aud", [7]), ("aud", {"a": 1}), ("sub", ""), ("sub", 7), ("exp", "soon")),
        *(("nbf", "soon"), ("iat", [1]), ("scope", [1]), ("scope", {"a": 1}), ("scp", True)),
    ],
)
async def test_the_claim_that_is_wrong_is_named(
    server: AuthorizationServer, issuer: Issuer, claim: str, value: Any
) -> None:
    assert await refusal(issuer, server.token(**{claim: value})) == f"The access token has a malformed claim {claim}."


@pytest.mark.parametrize("claims", [["iss"], "iss", 7, None, b"{", b"", b"\xff"])
async def test_claims_are_an_object(server: AuthorizationServer, issuer: Issuer, claims: Any) -> None:
    token = f"{encoded({'alg': 'ES256'})}.{encoded(claims) or 'AA'}.AAAA"

    assert await refusal(issuer, token) == "The access token's claims are malformed."


@pytest.mark.parametrize("subject", ["", "a" * 256, "a\x00b", "a\nb", "a\x9bb", 7, True, ["ann"], {"id": "ann"}])
async def test_a_subject_is_a_short_text(server: AuthorizationServer, issuer: Issuer, subject: Any) -> None:
    assert await refusal(issuer, server.token(sub=subject))


async def test_a_token_is_good_from_its_beginning_to_its_end(server: AuthorizationServer) -> None:
    issuer = Issuer(server.issuer, AUDIENCE, clock := Clock())
    now = clock.now

    assert await issuer.verify(server.token(exp=now + 1, nbf=now - 1, iat=now - 1.5))
    assert await issuer.verify(server.token(exp=now - LEEWAY + 1, nbf=now + LEEWAY, iat=now + LEEWAY))
    assert "expired" in await refusal(issuer, server.token(exp=now - LEEWAY))
    assert "expired" in await refusal(issuer, server.token(exp=-1))
    assert "from the future" in await refusal(issuer, server.token(nbf=now + LEEWAY + 1))
    assert "from the future" in await refusal(issuer, server.token(iat=now + LEEWAY + 1))


@pytest.mark.parametrize("time", ["soon", True, "99999999999", [99999999999], {}])
async def test_a_time_is_a_number(server: AuthorizationServer, issuer: Issuer, time: Any) -> None:
    for claim in ("exp", "nbf", "iat"):
        assert await refusal(issuer, server.token(**{claim: time}))


async def test_a_token_that_was_verified_expires_all_the_same(server: AuthorizationServer) -> None:
    issuer = Issuer(server.issuer, AUDIENCE, clock := Clock())
    token = server.token(exp=clock.now + 60)
    claims = await issuer.verify(token)

    clock.now += 59 + LEEWAY
    assert await issuer.verify(token) is claims
    clock.now += 1
    assert "expired" in await refusal(issuer, token)


@pytest.mark.parametrize(
    ("claims", "scopes"),
    [
        ({"scope": "read_events  write_events"}, {"read_events", "write_events"}),
        ({"scope": None, "scp": "read_events"}, {"read_events"}),
        ({"scope": None, "scp": ["read_events", "manage_keys"]}, {"read_events", "manage_keys"}),
        ({"scope": "read_events", "scp": ["manage_keys"]}, {"read_events", "manage_keys"}),
        ({"scope": "READ_EVENTS read_events,write_events admin *"}, set[str]()),
        ({"scope": ""}, set[str]()),
        ({"scope": None}, set[str]()),
        ({"scope": " ".join(SCOPES)}, set(SCOPES)),
    ],
)
async def test_scopes_come_in_two_spellings(
    server: AuthorizationServer, issuer: Issuer, claims: dict[str, Any], scopes: set[str]
) -> None:
    assert (await issuer.verify(server.token(**claims))).scopes == scopes


@pytest.mark.parametrize(
    ("email", "verified"),
    [
        ("ann@example.com", False),
        ("ann@example.com", "true"),
        ("ann@example.com", 1),
        ("ann@example.com", None),
        ("ann", True),
        ("ann@example.com\x00", True),
        ("ann@" + "e" * 250 + ".com", True),
        (["ann@example.com"], True),
        (7, True),
        (None, True),
        ("\N{KELVIN SIGN}ate@example.com", True),  # whose lower case is kate@example.com
    ],
)
async def test_an_address_counts_only_when_it_is_one_and_verified(
    server: AuthorizationServer, issuer: Issuer, email: Any, verified: Any
) -> None:
    assert (await issuer.verify(server.token(email=email, email_verified=verified))).email is None


# What is no token


@pytest.mark.parametrize(
    "token", ["x", "a.b", "a.b.c", "a.b.c.d", "..", "é.b.c", "a.b.c\n", "a b.c.d", "hf.." + "A" * 50, "A" * 50_000]
)
async def test_what_is_no_token_is_refused_without_asking_anybody(server: AuthorizationServer, token: str) -> None:
    issuer = Issuer(server.issuer, AUDIENCE)

    assert "neither an API key nor an access token" in await refusal(issuer, token)
    assert server.asked.total() == 0


async def test_a_token_has_a_size(server: AuthorizationServer, issuer: Issuer) -> None:
    assert await issuer.verify(server.token(groups="g" * 10_000))
    assert await refusal(issuer, server.token(groups="g" * 13_000))


async def test_what_is_nested_without_end_is_refused(server: AuthorizationServer, issuer: Issuer) -> None:
    deep = b'{"a":' + b"[" * 5_000
    key = server.keys[0]

    assert await refusal(issuer, signed({"alg": "ES256", "kid": key.kid}, deep, key))
    header = encoded(b'{"a":' + b"[" * 1_400)
    assert await refusal(issuer, f"{header}.{encoded({})}.AAAA")


# Never


@hypothesis(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(data=st.data())
async def test_no_bit_of_a_token_can_be_changed(
    server: AuthorizationServer, issuer: Issuer, data: st.DataObject
) -> None:
    if rsa_key() not in server.keys:
        server.keys.append(rsa_key())
    key, algorithm = data.draw(st.sampled_from([(server.keys[0], "ES256"), (rsa_key(), "RS256")]))
    header = {"alg": algorithm, "kid": data.draw(st.sampled_from([key.kid, None]))}
    token = server.token(key=key, header=header).encode()
    assert await issuer.verify(token.decode())

    place = data.draw(st.integers(0, len(token) - 1))
    bit = data.draw(st.integers(0, 7))
    changed = token[:place] + bytes([token[place] ^ 1 << bit]) + token[place + 1 :]

    await is_not_believed(issuer, changed.decode("latin-1"))


@hypothesis(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(data=st.data())
async def test_no_part_of_a_token_can_be_exchanged(
    server: AuthorizationServer, issuer: Issuer, data: st.DataObject
) -> None:
    tokens = [server.token(sub=subject).split(".") for subject in ("ann", "ben")]
    tokens.append(server.token(key=new_key(), header={"kid": server.keys[0].kid}, sub="eve").split("."))
    picked = [data.draw(st.integers(0, 2)) for _ in range(3)]
    parts = [tokens[which][part] for part, which in enumerate(picked)]

    if picked[1:] in ([0, 0], [1, 1]):  # all three have the same header
        assert (await issuer.verify(".".join(parts))).subject == ("ann", "ben")[picked[1]]
    else:
        assert await refusal(issuer, ".".join(parts))


members = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=5)
    | st.just(AUDIENCE)
    | st.just("ES256"),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=6,
)


@hypothesis(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(
    header=st.dictionaries(st.sampled_from(["alg", "typ", "kid", "crit", "b64", "jwk", "jku"]), members),
    claims=st.dictionaries(st.sampled_from(["iss", "aud", "sub", "exp", "nbf", "scope", "scp", "email"]), members),
    signature=st.binary(max_size=64),
)
async def test_nothing_that_is_sent_is_worse_than_invalid(
    server: AuthorizationServer, issuer: Issuer, header: Any, claims: Any, signature: bytes
) -> None:
    good = {"alg": "ES256", "kid": server.keys[0].kid}
    for each in (header, good):
        assert await refusal(issuer, f"{encoded(each)}.{encoded(claims)}.{encoded(signature)}")


@hypothesis(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(claims=st.dictionaries(st.sampled_from(["nbf", "iat", "scope", "scp", "email", "email_verified"]), members))
async def test_signed_claims_of_any_shape_are_believed_or_invalid(
    server: AuthorizationServer, issuer: Issuer, claims: Any
) -> None:
    now = time.time()
    good = {"iss": server.issuer, "aud": AUDIENCE, "sub": "ann", "exp": now + 60}
    try:
        seen = await issuer.verify(
            signed({"alg": "ES256", "kid": server.keys[0].kid}, {**good, **claims}, server.keys[0])
        )
    except InvalidToken:
        return
    assert seen.subject == "ann"
    assert seen.scopes <= SCOPES.keys()
    assert seen.email is None


async def test_the_server_signs_what_the_tests_think_it_signs(server: AuthorizationServer) -> None:
    header, claims, _ = (part + "==" for part in server.token(scp=["x"], nbf=None).split("."))
    key: Key = server.keys[0]

    assert json.loads(urlsafe_b64decode(header)) == {"alg": "ES256", "typ": "at+jwt", "kid": key.kid}
    assert {"iss", "aud", "sub", "exp", "iat", "scope", "scp"} == json.loads(urlsafe_b64decode(claims)).keys()
