"""A token gives back what was signed, to every holder of the keys; a verified token is cached."""

import json
from typing import Any

import pytest
from joserfc import jwt
from joserfc.jwk import KeySet

from holdfast.inventory.agents import tokens
from holdfast.inventory.agents.tokens import TokenSigner
from tests.helpers.inventory_service import run_sql
from tests.inventory.agents.tokens.conftest import AUDIENCE, ISSUER, TICKET, VOUCHER, Signing, claims_of


async def test_a_verified_token_has_the_signed_claims(database: Signing) -> None:
    signer = TokenSigner(database, ISSUER)
    signed = await signer.sign(TICKET, "ada", seat="7")

    claims = await signer.verify(signed.token, TICKET)
    assert (claims.iss, claims.aud, claims.sub, claims.seat) == (ISSUER, AUDIENCE, "ada", "7")
    assert claims.exp == claims.iat + 600 == signed.expires_at.timestamp()
    assert await signer.verify(signed.token, VOUCHER, TICKET) == claims


async def test_a_token_can_be_verified_with_the_published_keys_alone(database: Signing) -> None:
    signer = TokenSigner(database, ISSUER)
    signed = await signer.sign(TICKET, "ada", seat="7")
    keys: Any = json.loads(json.dumps(await signer.jwks()))

    assert "d" not in keys["keys"][0]
    assert jwt.decode(signed.token, KeySet.import_key_set(keys), ["ES256"]).claims["seat"] == "7"


async def test_a_token_has_the_time_of_the_database(database: Signing) -> None:
    claims = await claims_of(TokenSigner(database, ISSUER))
    ((now,),) = await run_sql(database, "select extract(epoch from now())::int")

    assert abs(claims.iat - now) <= 2


async def test_a_cached_token_needs_neither_the_database_nor_a_second_verification(
    database: Signing, monkeypatch: pytest.MonkeyPatch
) -> None:
    signer = TokenSigner(database, ISSUER)
    token = (await signer.sign(TICKET, "ada", seat="7")).token
    claims = await signer.verify(token, TICKET)
    await database.pool.close()

    assert await signer.verify(token, TICKET) is claims


async def test_a_cache_of_verified_tokens_stays_bounded(database: Signing, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tokens, "MAX_CACHED_TOKENS", 2)
    signer = TokenSigner(database, ISSUER)
    signed = [(await signer.sign(TICKET, "ada", seat=str(seat))).token for seat in range(3)]
    seen = [await signer.verify(token, TICKET) for token in signed]

    assert await signer.verify(signed[2], TICKET) is seen[2]
    assert await signer.verify(signed[0], TICKET) is not seen[0]
