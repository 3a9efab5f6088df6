"""The claims of an access token: type, subject, audience, times and scopes."""

import time
from typing import Any

import pytest

from holdfast.events.oauth.issuer import LEEWAY_SECONDS, Issuer
from holdfast.events.oauth.model import SCOPES
from tests.events.oauth.authorization_server import AUDIENCE, AuthorizationServer, encode_part
from tests.events.oauth.outcomes import refusal
from tests.helpers.manual_clock import ManualClock

pytestmark = pytest.mark.asyncio(loop_scope="module")


async def test_a_verified_token_has_a_subject_an_address_scopes_and_an_expiry(
    server: AuthorizationServer, issuer: Issuer
) -> None:
    expires_at = int(time.time()) + 60
    token = server.token(exp=expires_at, email="Ann@Example.com", email_verified=True, scope="read_events openid")

    claims = await issuer.verify(token)

    assert (claims.subject, claims.scopes) == ("ann", {"read_events"})
    assert (claims.email, claims.expires_at) == ("ann@example.com", expires_at)


# Headers


@pytest.mark.parametrize("typ", ["at+jwt", "application/at+jwt", "AT+JWT", "JWT", "jwt", None])
async def test_a_token_of_an_access_token_type_is_accepted(
    server: AuthorizationServer, issuer: Issuer, typ: str | None
) -> None:
    assert await issuer.verify(server.token(header={"typ": typ}))


@pytest.mark.parametrize("typ", ["logout+jwt", "secevent+jwt", "oauth-id-jag+jwt", "dpop+jwt", "", "at+jwt "])
async def test_a_token_of_another_type_is_refused(server: AuthorizationServer, issuer: Issuer, typ: str) -> None:
    assert "not an access token" in await refusal(issuer, server.token(header={"typ": typ}))


async def test_a_token_with_an_unknown_critical_header_is_refused(server: AuthorizationServer, issuer: Issuer) -> None:
    headers: list[dict[str, Any]] = [{"crit": ["exp"], "exp": 1}, {"crit": ["b64"], "b64": False}, {"crit": []}]
    for header in headers:
        assert "extension" in await refusal(issuer, server.token(header=header))


# Claims


@pytest.mark.parametrize("other", ["", "/", "x", ".evil.example"])
async def test_the_issuer_of_a_token_is_compared_exactly(
    server: AuthorizationServer, issuer: Issuer, other: str
) -> None:
    assert "another issuer" in await refusal(issuer, server.token(iss=server.issuer.upper() + other))


@pytest.mark.parametrize("audience", [AUDIENCE, [AUDIENCE], ["https://else.example", AUDIENCE]])
async def test_a_token_with_several_audiences_that_include_ours_is_accepted(
    server: AuthorizationServer, issuer: Issuer, audience: Any
) -> None:
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
async def test_a_token_for_another_audience_is_refused(
    server: AuthorizationServer, issuer: Issuer, audience: Any
) -> None:
    assert await refusal(issuer, server.token(aud=audience))


@pytest.mark.parametrize("claim", ["iss", "aud", "sub", "exp"])
async def test_a_token_without_a_required_claim_is_refused_by_its_name(
    server: AuthorizationServer, issuer: Issuer, claim: str
) -> None:
    assert await refusal(issuer, server.token(**{claim: None})) == f"The access token lacks the claim {claim}."


@pytest.mark.parametrize(
    ("claim", "value"),
    [
        *(("iss", 7), ("aud", [7]), ("aud", {"a": 1}), ("sub", ""), ("sub", 7), ("exp", "soon")),
        *(("nbf", "soon"), ("iat", [1]), ("scope", [1]), ("scope", {"a": 1}), ("scp", True)),
    ],
)
async def test_a_malformed_claim_is_refused_by_its_name(
    server: AuthorizationServer, issuer: Issuer, claim: str, value: Any
) -> None:
    assert await refusal(issuer, server.token(**{claim: value})) == f"The access token has a malformed claim {claim}."


@pytest.mark.parametrize("claims", [["iss"], "iss", 7, None, b"{", b"", b"\xff"])
async def test_claims_that_are_no_object_are_refused(server: AuthorizationServer, issuer: Issuer, claims: Any) -> None:
    token = f"{encode_part({'alg': 'ES256'})}.{encode_part(claims) or 'AA'}.AAAA"

    assert await refusal(issuer, token) == "The access token's claims are malformed."


@pytest.mark.parametrize("subject", ["", "a" * 256, "a\x00b", "a\nb", "a\x9bb", 7, True, ["ann"], {"id": "ann"}])
async def test_a_subject_that_is_no_short_text_is_refused(
    server: AuthorizationServer, issuer: Issuer, subject: Any
) -> None:
    assert await refusal(issuer, server.token(sub=subject))


async def test_a_token_is_accepted_from_its_beginning_to_its_end(server: AuthorizationServer) -> None:
    issuer = Issuer(server.issuer, AUDIENCE, clock := ManualClock(int(time.time())))
    now = clock.now

    assert await issuer.verify(server.token(exp=now + 1, nbf=now - 1, iat=now - 1.5))
    assert await issuer.verify(
        server.token(exp=now - LEEWAY_SECONDS + 1, nbf=now + LEEWAY_SECONDS, iat=now + LEEWAY_SECONDS)
    )
    assert "expired" in await refusal(issuer, server.token(exp=now - LEEWAY_SECONDS))
    assert "expired" in await refusal(issuer, server.token(exp=-1))
    assert "from the future" in await refusal(issuer, server.token(nbf=now + LEEWAY_SECONDS + 1))
    assert "from the future" in await refusal(issuer, server.token(iat=now + LEEWAY_SECONDS + 1))


@pytest.mark.parametrize("time", ["soon", True, "99999999999", [99999999999], {}])
async def test_a_time_claim_that_is_no_number_is_refused(
    server: AuthorizationServer, issuer: Issuer, time: Any
) -> None:
    for claim in ("exp", "nbf", "iat"):
        assert await refusal(issuer, server.token(**{claim: time}))


async def test_a_cached_token_expires_at_its_time(server: AuthorizationServer) -> None:
    issuer = Issuer(server.issuer, AUDIENCE, clock := ManualClock(int(time.time())))
    token = server.token(exp=clock.now + 60)
    claims = await issuer.verify(token)

    clock.now += 59 + LEEWAY_SECONDS
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
async def test_scopes_are_read_from_either_claim(
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
async def test_an_email_claim_that_is_not_verified_or_invalid_is_ignored(
    server: AuthorizationServer, issuer: Issuer, email: Any, verified: Any
) -> None:
    assert (await issuer.verify(server.token(email=email, email_verified=verified))).email is None
