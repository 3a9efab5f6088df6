"""The keys that sign: shared by all processes, published before they sign, kept until all they signed has expired."""

import asyncio
import contextlib

import pytest
from structlog.testing import capture_logs

from holdfast.inventory.agents import tokens
from holdfast.inventory.agents.tokens import TOKEN_SIGNING_KEYS, TokenSigner
from holdfast.kit.security.service_secret import Secret
from holdfast.kit.security.signed_tokens import PUBLISHED_TTL_SECONDS, SIGNING_DELAY_SECONDS, InvalidToken
from tests.helpers.inventory_service import run_sql
from tests.inventory.agents.tokens.conftest import (
    ISSUER,
    TICKET,
    Signing,
    age_keys,
    claims_of,
    key_id_of,
    process,
    published_key_ids,
    refusal,
    stored_key,
)


async def test_tokens_of_processes_that_start_at_once_are_good_everywhere(database: Signing, database_url: str) -> None:
    async with contextlib.AsyncExitStack() as stack:
        signers = [TokenSigner(await stack.enter_async_context(process(database_url)), issuer=ISSUER) for _ in range(5)]
        signed = await asyncio.gather(*(signer.sign(TICKET, "ada", seat="7") for signer in signers for _ in range(3)))

        assert await run_sql(database, "select count(*) from signing_keys") == [(1,)]
        for signer in signers:
            for one in signed:
                await signer.verify(one.token, TICKET)


async def test_a_fresh_key_is_published_before_it_signs(database: Signing) -> None:
    old = key_id_of((await TokenSigner(database, ISSUER).sign(TICKET, "ada", seat="7")).token)
    await age_keys(database, 3600)
    assert await database.transact(TOKEN_SIGNING_KEYS.rotate) == 1

    fresh = TokenSigner(database, ISSUER)
    new, _ = published_key_ids(await fresh.jwks())
    assert new != old
    assert key_id_of((await fresh.sign(TICKET, "ada", seat="7")).token) == old

    await age_keys(database, SIGNING_DELAY_SECONDS)
    assert key_id_of((await TokenSigner(database, ISSUER).sign(TICKET, "ada", seat="7")).token) == new


async def test_a_key_begins_to_sign_only_after_all_caches_without_it_have_expired() -> None:
    assert SIGNING_DELAY_SECONDS > PUBLISHED_TTL_SECONDS + tokens.CACHE_SECONDS


async def test_an_old_key_is_kept_until_all_it_signed_has_expired(database: Signing) -> None:
    assert SIGNING_DELAY_SECONDS + tokens.CACHE_SECONDS + tokens.MAX_LIFETIME_SECONDS + tokens.LEEWAY_SECONDS < 86_400
    token = (await TokenSigner(database, ISSUER).sign(TICKET, "ada", seat="7")).token
    await database.transact(TOKEN_SIGNING_KEYS.rotate)
    await age_keys(database, 86_400 - 60)
    assert await database.transact(TOKEN_SIGNING_KEYS.rotate) == 1
    await TokenSigner(database, ISSUER).verify(token, TICKET)

    await age_keys(database, 120)
    assert await database.transact(TOKEN_SIGNING_KEYS.rotate) == 2
    assert "unknown key" in await refusal(TokenSigner(database, ISSUER), token)
    assert len(published_key_ids(await TokenSigner(database, ISSUER).jwks())) == 3


async def test_the_only_key_signs_whatever_its_age(database: Signing) -> None:
    only = published_key_ids(await TokenSigner(database, ISSUER).jwks())
    await age_keys(database, 10**8)

    assert [key_id_of((await TokenSigner(database, ISSUER).sign(TICKET, "ada", seat="7")).token)] == only


async def test_a_token_of_a_key_made_a_moment_ago_is_verified(
    database: Signing, monkeypatch: pytest.MonkeyPatch
) -> None:
    here, other = TokenSigner(database, ISSUER), TokenSigner(database, ISSUER)
    await here.jwks()
    await run_sql(database, "delete from signing_keys")
    token = (await other.sign(TICKET, "ada", seat="7")).token
    monkeypatch.setattr(tokens, "CACHE_SECONDS", 3600)

    async with asyncio.timeout(5):
        while True:
            with contextlib.suppress(InvalidToken):
                assert (await here.verify(token, TICKET)).seat == "7"
                break


async def test_a_token_of_a_deleted_key_is_refused_even_where_it_was_cached(
    database: Signing, monkeypatch: pytest.MonkeyPatch
) -> None:
    signer = TokenSigner(database, ISSUER)
    token = (await signer.sign(TICKET, "ada", seat="7")).token
    await signer.verify(token, TICKET)
    await run_sql(database, "delete from signing_keys")
    monkeypatch.setattr(tokens, "CACHE_SECONDS", -1)

    assert "unknown key" in await refusal(signer, token)


async def test_keys_sealed_with_another_secret_are_kept_and_replaced(database: Signing, database_url: str) -> None:
    token = (await TokenSigner(database, ISSUER).sign(TICKET, "ada", seat="7")).token
    async with process(database_url, Secret(b"another secret of thirty-two char")) as other:
        with capture_logs() as logs:
            await claims_of(TokenSigner(other, ISSUER))
            assert "unknown key" in await refusal(TokenSigner(other, ISSUER), token)

    assert {entry["event"] for entry in logs} == {"a signing key was sealed under another secret key"}
    assert (await TokenSigner(database, ISSUER).verify(token, TICKET)).seat == "7"


async def test_the_database_stores_no_private_key_in_plain_text(database: Signing) -> None:
    key = await stored_key(database, TokenSigner(database, ISSUER))
    ((row,),) = await run_sql(database, "select convert_from(sealed, 'utf8') || kid from signing_keys")

    assert str(key.as_dict(private=True)["d"]) not in row
