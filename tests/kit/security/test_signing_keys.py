"""Key sets: an algorithm and a table for each purpose; what one signed, no other verifies."""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, AsyncIterator
from dataclasses import dataclass
from typing import Any

import pytest
from joserfc import jws, jwt
from joserfc.jwk import KeySet as PublicKeys

from holdfast.kit.postgres.database import Database
from holdfast.kit.security.secrets import Secret
from holdfast.kit.security.signing_keys import (
    SIGNING_DELAY_SECONDS,
    Algorithm,
    InvalidToken,
    KeySet,
    SigningKeys,
    UnknownKey,
)

SECRET = Secret(b"a secret of thirty-two characters")


@dataclass(frozen=True)
class Settings:
    secret: Secret = SECRET


Signing = Database[Any]

LETTERS = KeySet("letter_keys", "ES256", 3600)
PARCELS = KeySet("parcel_keys", "RS256", 3600)
SETS = pytest.mark.parametrize("keys", [LETTERS, PARCELS], ids=lambda keys: keys.algorithm)


@contextlib.asynccontextmanager
async def process(url: str) -> AsyncGenerator[Signing]:
    database = Database(url, Settings(), size=4, name="tests")
    await database.pool.open()
    yield database
    await database.pool.close()


@pytest.fixture
async def database(database_url: str) -> AsyncIterator[Signing]:
    async with process(database_url) as database:
        for table in (LETTERS.table, PARCELS.table):
            await run_sql(
                database,
                f"create table {table} (kid text primary key, sealed bytea not null,"
                " inserted_at timestamptz not null default now())",
            )
        yield database


async def run_sql(database: Signing, statement: Any) -> list[tuple[Any, ...]]:
    async with database.pool.connection() as connection:
        cursor = await connection.execute(statement)
        return await cursor.fetchall() if cursor.description is not None else []


def kid(token: str) -> str:
    return str(jws.extract_compact(token.encode()).headers()["kid"])


def public(keys: SigningKeys) -> PublicKeys:
    return PublicKeys.import_key_set(keys.published())  # pyright: ignore[reportArgumentType]


@SETS
async def test_what_a_set_signs_is_opened_by_it_and_by_its_published_keys(database: Signing, keys: KeySet) -> None:
    now = await database.transact(keys.read)
    token = now.sign("note+jwt", {"sub": "ada"})

    assert now.opened(token, {"note+jwt"}) == ("note+jwt", b'{"sub":"ada"}')
    assert jwt.decode(token, public(now), [keys.algorithm]).claims == {"sub": "ada"}
    assert all("d" not in key for key in now.published()["keys"])
    with pytest.raises(InvalidToken, match="another kind"):
        now.opened(token, {"other+jwt"})


async def test_no_set_opens_what_another_signed(database: Signing) -> None:
    letters, parcels = await database.transact(LETTERS.read), await database.transact(PARCELS.read)
    for signer, other in ((letters, parcels), (parcels, letters)):
        with pytest.raises(InvalidToken):
            other.opened(signer.sign("note+jwt", {}), {"note+jwt"})

    twin = KeySet("letter_keys", "ES256", 3600)
    await run_sql(database, "delete from letter_keys")
    with pytest.raises(UnknownKey):
        (await database.transact(twin.read)).opened(letters.sign("note+jwt", {}), {"note+jwt"})


@SETS
async def test_processes_that_come_at_once_make_one_first_key(
    database: Signing, database_url: str, keys: KeySet
) -> None:
    async with process(database_url) as other:
        read = await asyncio.gather(*(process.transact(keys.read) for process in (database, other) * 4))

    assert len({signing_keys.published()["keys"][0]["kid"] for signing_keys in read}) == 1
    assert await run_sql(database, f"select count(*) from {keys.table}") == [(1,)]


@SETS
async def test_a_moment_belongs_to_the_key_that_signed_then(database: Signing, keys: KeySet) -> None:
    await database.transact(keys.read)
    await run_sql(database, f"update {keys.table} set inserted_at = now() - interval '1 hour'")
    await database.transact(keys.rotate)
    now = await database.transact(keys.read)
    (new, since), (old, _) = now.stored

    assert kid(now.sign("note+jwt", {})) == old.kid
    assert kid(now.sign("note+jwt", {}, at=since + SIGNING_DELAY_SECONDS)) == new.kid
    assert kid(now.sign("note+jwt", {}, at=since + SIGNING_DELAY_SECONDS - 1)) == old.kid
    assert kid(now.sign("note+jwt", {}, at=0)) == old.kid


async def test_rsa_signs_the_same_the_same_way_each_time(database: Signing) -> None:
    keys = await database.transact(PARCELS.read)

    assert len({keys.sign("note+jwt", {"sub": "ada"}) for _ in range(3)}) == 1


@pytest.mark.parametrize("algorithm", ["ES256", "RS256"])
async def test_a_key_is_kept_until_half_a_day_after_the_last_token_it_signed(
    database: Signing, algorithm: Algorithm
) -> None:
    keys = KeySet("letter_keys", algorithm, longest=30 * 86_400)
    await database.transact(keys.read)
    await run_sql(database, "update letter_keys set inserted_at = now() - interval '60 days'")
    await database.transact(keys.rotate)
    await run_sql(database, "update letter_keys set inserted_at = inserted_at - interval '30 days 11 hours'")
    assert await database.transact(keys.rotate) == 1

    await run_sql(database, "update letter_keys set inserted_at = inserted_at - interval '2 hours'")
    assert await database.transact(keys.rotate) == 2
