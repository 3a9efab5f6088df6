"""A text that is no token, or a changed token, is refused and does no harm."""

import time
from typing import Any

import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as hypothesis
from hypothesis import strategies as st

from holdfast.events.oauth.issuer import Issuer
from holdfast.events.oauth.model import SCOPES
from holdfast.kit.security.signed_tokens import InvalidToken
from tests.events.oauth.authorization_server import (
    AUDIENCE,
    AuthorizationServer,
    encode_part,
    new_key,
    rsa_key,
    sign_token,
)
from tests.events.oauth.outcomes import is_not_believed, refusal

pytestmark = pytest.mark.asyncio(loop_scope="module")


# What is no token


@pytest.mark.parametrize(
    "token", ["x", "a.b", "a.b.c", "a.b.c.d", "..", "é.b.c", "a.b.c\n", "a b.c.d", "hf.." + "A" * 50, "A" * 50_000]
)
async def test_a_text_that_is_no_token_is_refused_without_a_request_to_the_issuer(
    server: AuthorizationServer, token: str
) -> None:
    issuer = Issuer(server.issuer, AUDIENCE)

    assert "neither an API key nor an access token" in await refusal(issuer, token)
    assert server.requests.total() == 0


async def test_a_token_beyond_the_maximum_size_is_refused(server: AuthorizationServer, issuer: Issuer) -> None:
    assert await issuer.verify(server.token(groups="g" * 10_000))
    assert await refusal(issuer, server.token(groups="g" * 13_000))


async def test_a_token_with_deeply_nested_json_is_refused(server: AuthorizationServer, issuer: Issuer) -> None:
    deep = b'{"a":' + b"[" * 5_000
    key = server.keys[0]

    assert await refusal(issuer, sign_token({"alg": "ES256", "kid": key.kid}, deep, key))
    header = encode_part(b'{"a":' + b"[" * 1_400)
    assert await refusal(issuer, f"{header}.{encode_part({})}.AAAA")


# Whatever is changed


@hypothesis(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
async def test_a_token_with_any_changed_bit_is_refused(
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


@hypothesis(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
async def test_a_token_with_parts_of_another_token_is_refused(
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


@hypothesis(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    header=st.dictionaries(st.sampled_from(["alg", "typ", "kid", "crit", "b64", "jwk", "jku"]), members),
    claims=st.dictionaries(st.sampled_from(["iss", "aud", "sub", "exp", "nbf", "scope", "scp", "email"]), members),
    signature=st.binary(max_size=64),
)
async def test_a_token_of_any_content_is_refused_as_invalid_at_worst(
    server: AuthorizationServer, issuer: Issuer, header: Any, claims: Any, signature: bytes
) -> None:
    good = {"alg": "ES256", "kid": server.keys[0].kid}
    for token_header in (header, good):
        assert await refusal(issuer, f"{encode_part(token_header)}.{encode_part(claims)}.{encode_part(signature)}")


@hypothesis(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(claims=st.dictionaries(st.sampled_from(["nbf", "iat", "scope", "scp", "email", "email_verified"]), members))
async def test_signed_claims_of_any_shape_are_accepted_or_invalid(
    server: AuthorizationServer, issuer: Issuer, claims: Any
) -> None:
    now = time.time()
    good = {"iss": server.issuer, "aud": AUDIENCE, "sub": "ann", "exp": now + 60}
    try:
        seen = await issuer.verify(
            sign_token({"alg": "ES256", "kid": server.keys[0].kid}, {**good, **claims}, server.keys[0])
        )
    except InvalidToken:
        return
    assert seen.subject == "ann"
    assert seen.scopes <= SCOPES.keys()
    assert seen.email is None
