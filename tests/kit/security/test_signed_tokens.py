"""Signed tokens: what one set of keys signed as one type, no other set verifies, and no other type."""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, AsyncIterator
from dataclasses import dataclass
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, assume, given
from hypothesis import settings as hypothesis
from hypothesis import strategies as st
from joserfc import jws, jwt
from joserfc.jwk import KeySet as PublicKeys
from msgspec import Struct

from holdfast.kit.postgres.database import Database
from holdfast.kit.security.service_secret import Secret
from holdfast.kit.security.signed_tokens import (
    SIGNING_DELAY_SECONDS,
    Algorithm,
    ForeignToken,
    InvalidToken,
    SigningKeySet,
    SigningKeyTable,
    TokenType,
    UnknownKey,
)

SECRET = Secret(b"a secret of thirty-two characters")


@dataclass(frozen=True)
class KeySettings:
    secret: Secret = SECRET


Signing = Database[Any]

LETTERS = SigningKeyTable("letter_keys", "ES256", 3600)
PARCELS = SigningKeyTable("parcel_keys", "RS256", 3600)
SETS = pytest.mark.parametrize("keys", [LETTERS, PARCELS], ids=lambda keys: keys.algorithm)


class Note(Struct, frozen=True):
    iss: str = "https://example.com"
    aud: str | list[str] = "readers"
    iat: int = 1_000
    exp: int = 1_600
    sub: str = "ada"


NOTE = TokenType("note+jwt", Note, lambda note: "readers", lifetime=600)
OTHER = TokenType("other+jwt", Note, lambda note: "readers", lifetime=600)


def verify_token(keys: SigningKeySet, token: str, *types: TokenType[Note]) -> Note:
    return keys.verify(token, types or (NOTE,), "https://example.com".__eq__)[1]


@contextlib.asynccontextmanager
async def process(url: str) -> AsyncGenerator[Signing]:
    database = Database(url, KeySettings(), size=4, name="tests")
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


def public(keys: SigningKeySet) -> PublicKeys:
    return PublicKeys.import_key_set(keys.jwks())  # pyright: ignore[reportArgumentType]


@SETS
async def test_a_token_is_verified_by_its_set_of_keys_and_by_their_published_keys(
    database: Signing, keys: SigningKeyTable
) -> None:
    now = await database.transact(keys.read_or_create)
    token = now.sign(NOTE, Note())

    assert now.verify(token, [OTHER, NOTE], "https://example.com".__eq__) == (NOTE, Note())
    assert jwt.decode(token, public(now), [keys.algorithm]).claims == msgspec.to_builtins(Note())
    assert all("d" not in key for key in now.jwks()["keys"])


@SETS
async def test_a_token_of_one_type_is_not_one_of_another(database: Signing, keys: SigningKeyTable) -> None:
    now = await database.transact(keys.read_or_create)

    with pytest.raises(InvalidToken, match="another kind"):
        verify_token(now, now.sign(NOTE, Note()), OTHER)


async def test_a_token_signed_by_one_set_of_keys_is_refused_by_another(database: Signing) -> None:
    letters, parcels = await database.transact(LETTERS.read_or_create), await database.transact(PARCELS.read_or_create)
    for signer, other in ((letters, parcels), (parcels, letters)):
        with pytest.raises(InvalidToken):
            verify_token(other, signer.sign(NOTE, Note()))

    twin = SigningKeyTable("letter_keys", "ES256", 3600)
    await run_sql(database, "delete from letter_keys")
    with pytest.raises(UnknownKey):
        verify_token(await database.transact(twin.read_or_create), letters.sign(NOTE, Note()))


@pytest.mark.parametrize(
    "note", [Note(iss="https://example.org"), Note(aud="others"), Note(aud=[]), Note(aud=["others", "more"])]
)
async def test_a_token_for_another_issuer_or_audience_raises_foreign_token(database: Signing, note: Note) -> None:
    keys = await database.transact(LETTERS.read_or_create)

    with pytest.raises(ForeignToken):
        verify_token(keys, keys.sign(NOTE, note))


async def test_an_audience_may_be_one_of_several(database: Signing) -> None:
    keys = await database.transact(LETTERS.read_or_create)
    note = Note(aud=["others", "readers"])

    assert verify_token(keys, keys.sign(NOTE, note)) == note


@hypothesis(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(share=st.floats(0, 1, exclude_max=True), character=st.characters())
async def test_a_token_with_another_character_is_never_accepted(
    database: Signing, share: float, character: str
) -> None:
    keys = await database.transact(LETTERS.read_or_create)
    token = keys.sign(NOTE, Note())
    place = int(share * (len(token) - 1))  # the last character has bits that are no part of the signature
    assume(character != token[place])

    with pytest.raises(InvalidToken):
        verify_token(keys, token[:place] + character + token[place + 1 :])


@given(
    begins_at=st.integers(-(2**40), 2**40),
    lasts=st.integers(0, 2**20),
    leeway=st.integers(0, 100),
    now=st.integers(-(2**40), 2**40),
)
def test_a_token_is_accepted_from_its_start_to_its_end_and_at_no_other_time(
    begins_at: int, lasts: int, leeway: int, now: int
) -> None:
    note = Note(iat=begins_at, exp=begins_at + lasts)
    with_leeway = TokenType("note+jwt", Note, lambda note: "readers", lifetime=600, leeway=leeway)

    for moment in (now, note.iat - leeway - 1, note.iat - leeway, note.exp + leeway - 1, note.exp + leeway):
        try:
            with_leeway.require_current(note, moment)
            is_accepted = True
        except InvalidToken:
            is_accepted = False
        assert is_accepted == (note.iat - leeway <= moment < note.exp + leeway)


@SETS
async def test_processes_that_come_at_once_make_one_first_key(
    database: Signing, database_url: str, keys: SigningKeyTable
) -> None:
    async with process(database_url) as other:
        read = await asyncio.gather(*(process.transact(keys.read_or_create) for process in (database, other) * 4))

    assert len({signing_keys.jwks()["keys"][0]["kid"] for signing_keys in read}) == 1
    assert await run_sql(database, f"select count(*) from {keys.table}") == [(1,)]


@SETS
async def test_the_key_of_a_past_moment_is_the_one_that_signed_then(database: Signing, keys: SigningKeyTable) -> None:
    await database.transact(keys.read_or_create)
    await run_sql(database, f"update {keys.table} set inserted_at = now() - interval '1 hour'")
    await database.transact(keys.rotate)
    now = await database.transact(keys.read_or_create)
    (new, since), (old, _) = now.stored_keys

    assert kid(now.sign(NOTE, Note())) == old.kid
    assert kid(now.sign(NOTE, Note(), at=since + SIGNING_DELAY_SECONDS)) == new.kid
    assert kid(now.sign(NOTE, Note(), at=since + SIGNING_DELAY_SECONDS - 1)) == old.kid
    assert kid(now.sign(NOTE, Note(), at=0)) == old.kid


async def test_a_token_signed_with_rsa_is_the_same_each_time(database: Signing) -> None:
    keys = await database.transact(PARCELS.read_or_create)

    assert len({keys.sign(NOTE, Note()) for _ in range(3)}) == 1


@pytest.mark.parametrize("algorithm", ["ES256", "RS256"])
async def test_a_key_is_kept_until_half_a_day_after_the_last_token_it_signed(
    database: Signing, algorithm: Algorithm
) -> None:
    keys = SigningKeyTable("letter_keys", algorithm, max_token_seconds=30 * 86_400)
    await database.transact(keys.read_or_create)
    await run_sql(database, "update letter_keys set inserted_at = now() - interval '60 days'")
    await database.transact(keys.rotate)
    await run_sql(database, "update letter_keys set inserted_at = inserted_at - interval '30 days 11 hours'")
    assert await database.transact(keys.rotate) == 1

    await run_sql(database, "update letter_keys set inserted_at = inserted_at - interval '2 hours'")
    assert await database.transact(keys.rotate) == 2
