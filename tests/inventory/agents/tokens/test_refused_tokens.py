"""A token of another kind, signed otherwise, expired or malformed is refused."""

import hmac
import json
from base64 import urlsafe_b64encode
from dataclasses import replace
from typing import Any

from hypothesis import HealthCheck, given
from hypothesis import settings as hypothesis
from hypothesis import strategies as st
from joserfc import jws, jwt
from joserfc.jwk import ECKey

from holdfast.inventory.agents import tokens
from holdfast.inventory.agents.tokens import TokenSigner
from tests.inventory.agents.tokens.conftest import AUDIENCE, ISSUER, TICKET, VOUCHER, Signing, refusal, stored_key


async def test_a_token_of_another_kind_is_refused(database: Signing) -> None:
    signer = TokenSigner(database, ISSUER)
    voucher = (await signer.sign(VOUCHER, "ada", seat="7")).token

    assert "another kind" in await refusal(signer, voucher)
    await signer.verify(voucher, VOUCHER)
    assert "another kind" in await refusal(signer, voucher)  # also once it is remembered


async def test_a_ticket_with_a_wrong_signature_or_header_is_refused(database: Signing) -> None:
    signer = TokenSigner(database, ISSUER)
    key = await stored_key(database, signer)
    good = (await signer.sign(TICKET, "ada", seat="7")).token
    header = {"alg": "ES256", "typ": TICKET.typ, "kid": key.kid}
    claims = jwt.decode(good, key, ["ES256"]).claims
    stranger = ECKey.generate_key("P-256")

    def sign(header: dict[str, Any], key: ECKey = key, **changes: Any) -> str:
        changed = {name: value for name, value in {**claims, **changes}.items() if value is not None}
        registry = jws.JWSRegistry(algorithms=["ES256"], strict_check_header=False)
        return jws.serialize_compact(header, json.dumps(changed), key, registry=registry)

    def unsigned(algorithm: str) -> str:
        """A token of another algorithm, with the signature of a good one."""
        head = base64url(json.dumps({**header, "alg": algorithm}).encode())
        return ".".join((head, *good.split(".")[1:]))

    def with_secret(secret: bytes) -> str:
        """A token signed by HMAC with what everybody knows."""
        signed = unsigned("HS256").rpartition(".")[0]
        return f"{signed}.{base64url(hmac.digest(secret, signed.encode(), 'sha256'))}"

    await signer.verify(sign(header), TICKET)
    forged = {
        "no signature": f"{good.rpartition('.')[0]}.",
        "none": unsigned("none"),
        "none, and no signature": f"{unsigned('none').rpartition('.')[0]}.",
        "HS256": unsigned("HS256"),
        "ES384": unsigned("ES384"),
        "the public key as a secret": with_secret(key.as_pem(private=False)),
        "a stranger's key": sign(header, stranger),
        "a key in the header": sign({**header, "jwk": stranger.as_dict(private=False)}, stranger),
        "a key elsewhere": sign({**header, "jku": "https://evil.example/jwks.json"}),
        "a critical extension": sign({**header, "crit": ["b64"], "b64": True}),
        "an unknown key": sign({**header, "kid": "x"}),
        "no key": sign({"alg": "ES256", "typ": TICKET.typ}),
        "no type": sign({"alg": "ES256", "kid": key.kid}),
        "the plain type": sign({**header, "typ": "JWT"}),
        "another issuer": sign(header, iss="https://evil.example"),
        "another audience": sign(header, aud=ISSUER),
        "two audiences": sign(header, aud=[AUDIENCE, ISSUER]),
        "no audience": sign(header, aud=None),
        "no expiry": sign(header, exp=None),
        "no start": sign(header, iat=None),
        "no subject": sign(header, sub=None),
        "an expiry in words": sign(header, exp="tomorrow"),
        "a claim missing": sign(header, seat=None),
        "expired": sign(header, exp=claims["iat"] - tokens.LEEWAY_SECONDS - 1),
        "from the future": sign(header, iat=claims["iat"] + tokens.LEEWAY_SECONDS + 50),
    }
    for name, token in forged.items():
        assert await refusal(signer, token), name
    assert "expired" in await refusal(signer, forged["expired"])
    assert "future" in await refusal(signer, forged["from the future"])


async def test_a_token_is_accepted_with_slightly_different_clocks(database: Signing) -> None:
    signer = TokenSigner(database, ISSUER)
    key = await stored_key(database, signer)
    good = (await signer.sign(TICKET, "ada", seat="7")).token
    claims = jwt.decode(good, key, ["ES256"]).claims
    header = {"alg": "ES256", "typ": TICKET.typ, "kid": key.kid}

    for changes in ({"exp": claims["iat"] - 5}, {"iat": claims["iat"] + 8}):
        ticket = await signer.verify(jwt.encode(header, {**claims, **changes}, key, ["ES256"]), TICKET)
        assert ticket.seat == "7"


async def test_a_cached_token_is_refused_after_its_expiry(database: Signing) -> None:
    brief = replace(TICKET, lifetime=-tokens.LEEWAY_SECONDS - 1)
    signer = TokenSigner(database, ISSUER)
    token = (await signer.sign(brief, "ada", seat="7")).token

    for _ in range(2):
        assert "expired" in await refusal(signer, token)


def base64url(content: bytes) -> str:
    return urlsafe_b64encode(content).rstrip(b"=").decode()


headers = st.one_of(
    st.binary(max_size=40),
    st.recursive(
        st.none() | st.integers() | st.text(max_size=5) | st.sampled_from(["ES256", "none", "ticket+jwt", "alg"]),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(st.sampled_from(["alg", "typ", "kid", "b64", "crit", "jwk"]), inner, max_size=4)
        ),
        max_leaves=6,
    ).map(lambda value: json.dumps(value).encode()),
)


@hypothesis(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(header=headers, claims=st.binary(max_size=40), signature=st.binary(min_size=64, max_size=64))
async def test_a_text_of_any_kind_is_refused_as_invalid_at_worst(
    database: Signing, header: bytes, claims: bytes, signature: bytes
) -> None:
    signer = TokenSigner(database, ISSUER)

    assert await refusal(signer, ".".join(map(base64url, (header, claims, signature))))
    assert await refusal(signer, claims.decode("latin-1"))
