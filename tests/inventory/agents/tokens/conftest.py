"""Two kinds of token for the tests, processes that sign them, and the keys that are stored."""

import contextlib
import json
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from dataclasses import dataclass
from typing import Any

import pytest
from joserfc import jws
from joserfc.jwk import ECKey

from holdfast.inventory.agents.tokens import LEEWAY_SECONDS, Claims, TokenSigner
from holdfast.kit.postgres.database import Database
from holdfast.kit.security.service_secret import Secret
from holdfast.kit.security.signed_tokens import InvalidToken, TokenType
from tests.helpers.inventory_service import run_sql

ISSUER = "https://example.com"
AUDIENCE = "https://example.com/door"
SECRET = Secret(b"a secret of thirty-two characters")

TABLE = """
create table signing_keys (kid text primary key, sealed bytea not null, inserted_at timestamptz not null default now())
"""


class Ticket(Claims, frozen=True):
    seat: str


TICKET = TokenType("ticket+jwt", Ticket, lambda ticket: f"{ticket.iss}/door", 600, LEEWAY_SECONDS)
VOUCHER = TokenType("voucher+jwt", Ticket, lambda ticket: f"{ticket.iss}/door", 600, LEEWAY_SECONDS)


@dataclass(frozen=True)
class TokenSettings:
    secret: Secret = SECRET


Signing = Database[Any]


@contextlib.asynccontextmanager
async def process(url: str, secret: Secret = SECRET) -> AsyncGenerator[Signing]:
    database = Database(url, TokenSettings(secret), size=4, name="tests")
    await database.pool.open()
    yield database
    await database.pool.close()


async def age_keys(database: Signing, seconds: int) -> None:
    """Make all stored keys older."""
    await run_sql(
        database, "update signing_keys set inserted_at = inserted_at - %(age)s * interval '1 second'", age=seconds
    )


async def stored_key(database: Signing, signer: TokenSigner) -> ECKey:
    """The only stored key, as an owner of the secret has it."""
    await signer.jwks()
    ((sealed,),) = await run_sql(database, "select sealed from signing_keys")
    return ECKey.import_key(json.loads(SECRET.unseal(sealed)))


def published_key_ids(jwks: Mapping[str, Any]) -> list[str]:
    return [key["kid"] for key in jwks["keys"]]


def key_id_of(token: str) -> str:
    return str(jws.extract_compact(token.encode()).headers()["kid"])


async def refusal(signer: TokenSigner, token: str, *kinds: TokenType[Ticket]) -> str:
    with pytest.raises(InvalidToken) as error:
        await signer.verify(token, *(kinds or (TICKET,)))
    return str(error.value)


async def claims_of(signer: TokenSigner) -> Ticket:
    return await signer.verify((await signer.sign(TICKET, "ada", seat="7")).token, TICKET)


@pytest.fixture
async def database(database_url: str) -> AsyncIterator[Signing]:
    async with process(database_url) as database:
        await run_sql(database, TABLE)
        yield database
