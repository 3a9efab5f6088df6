"""Tokens: signed with keys everybody knows in time, verified to the letter, dead when they have expired."""

import asyncio
import contextlib
import hmac
import json
from base64 import urlsafe_b64encode
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as hypothesis
from hypothesis import strategies as st
from joserfc import jws, jwt
from joserfc.jwk import ECKey, KeySet
from structlog.testing import capture_logs

from holdfast.kit import tokens
from holdfast.kit.database import Database
from holdfast.kit.secrets import Secret
from holdfast.kit.signing import PUBLISHED, SIGNS_AFTER, InvalidToken
from holdfast.kit.tokens import KEYS, Claims, Kind, Tokens

ISSUER = "https://example.com"
SECRET = Secret(b"a secret of thirty-two characters")

TABLE = """
create table signing_keys (kid text primary key, sealed bytea not null, inserted_at timestamptz not null default now())
"""


class Ticket(Claims, frozen=True):
    seat: str


TICKET = Kind("ticket+jwt", "https://door.example.com", 600, Ticket)
VOUCHER = Kind("voucher+jwt", "https://door.example.com", 600, Ticket)


@dataclass(frozen=True)
class Settings:
    secret: Secret = SECRET


Signing = Database[Settings]


@contextlib.asynccontextmanager
async def process(url: str, secret: Secret = SECRET) -> AsyncGenerator[Signing]:
    database = Database(url, Settings(secret), size=4, name="tests")
    await database.pool.open()
    yield database
    await database.pool.close()


@pytest.fixture
async def database(database_url: str) -> AsyncIterator[Signing]:
    async with process(database_url) as database:
        await run_sql(database, TABLE)
        yield database


async def run_sql(database: Signing, statement: Any, **parameters: Any) -> list[tuple[Any, ...]]:
    async with database.pool.connection() as connection:
        cursor = await connection.execute(statement, parameters)
        return await cursor.fetchall() if cursor.description is not None else []


async def age(database: Signing, seconds: int) -> None:
    """Make all stored keys older."""
    await run_sql(
        database, "update signing_keys set inserted_at = inserted_at - %(age)s * interval '1 second'", age=seconds
    )


async def stored(database: Signing, signer: Tokens) -> ECKey:
    """The only stored key, as whoever knows the secret has it."""
    await signer.jwks()
    ((sealed,),) = await run_sql(database, "select sealed from signing_keys")
    return ECKey.import_key(json.loads(SECRET.unseal(sealed)))


def published(jwks: Mapping[str, Any]) -> list[str]:
    return [key["kid"] for key in jwks["keys"]]


def signed_with(token: str) -> str:
    return str(jws.extract_compact(token.encode()).headers()["kid"])


async def refusal(signer: Tokens, token: str, *kinds: Kind[Ticket]) -> str:
    with pytest.raises(InvalidToken) as refused:
        await signer.verify(token, *(kinds or (TICKET,)))
    return str(refused.value)


async def test_a_token_comes_back_as_what_was_said(database: Signing) -> None:
    signer = Tokens(database, ISSUER)
    signed = await signer.sign(TICKET, "ada", seat="7")

    claims = await signer.verify(signed.token, TICKET)
    assert (claims.iss, claims.aud, claims.sub, claims.seat) == (ISSUER, TICKET.audience, "ada", "7")
    assert claims.exp == claims.iat + 600 == signed.expires_at.timestamp()
    assert await signer.verify(signed.token, VOUCHER, TICKET) == claims


async def test_a_token_can_be_verified_with_the_published_keys_alone(database: Signing) -> None:
    signer = Tokens(database, ISSUER)
    signed = await signer.sign(TICKET, "ada", seat="7")
    keys: Any = json.loads(json.dumps(await signer.jwks()))

    assert "d" not in keys["keys"][0]
    assert jwt.decode(signed.token, KeySet.import_key_set(keys), ["ES256"]).claims["seat"] == "7"


async def test_a_token_of_another_kind_is_refused(database: Signing) -> None:
    signer = Tokens(database, ISSUER)
    voucher = (await signer.sign(VOUCHER, "ada", seat="7")).token

    assert "another kind" in await refusal(signer, voucher)
    await signer.verify(voucher, VOUCHER)
    assert "another kind" in await refusal(signer, voucher)  # also once it is remembered


async def test_tokens_of_processes_that_start_at_once_are_good_everywhere(database: Signing, database_url: str) -> None:
    async with contextlib.AsyncExitStack() as stack:
        each = [Tokens(await stack.enter_async_context(process(database_url)), issuer=ISSUER) for _ in range(5)]
        signed = await asyncio.gather(*(signer.sign(TICKET, "ada", seat="7") for signer in each for _ in range(3)))

        assert await run_sql(database, "select count(*) from signing_keys") == [(1,)]
        for signer in each:
            for one in signed:
                await signer.verify(one.token, TICKET)


async def test_what_is_signed_otherwise_is_refused(database: Signing) -> None:
    signer = Tokens(database, ISSUER)
    key = await stored(database, signer)
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
        head = encoded(json.dumps({**header, "alg": algorithm}).encode())
        return ".".join((head, *good.split(".")[1:]))

    def with_secret(secret: bytes) -> str:
        """A token signed by HMAC with what everybody knows."""
        signed = unsigned("HS256").rpartition(".")[0]
        return f"{signed}.{encoded(hmac.digest(secret, signed.encode(), 'sha256'))}"

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
        "two audiences": sign(header, aud=[TICKET.audience, ISSUER]),
        "no audience": sign(header, aud=None),
        "no expiry": sign(header, exp=None),
        "no start": sign(header, iat=None),
        "no subject": sign(header, sub=None),
        "an expiry in words": sign(header, exp="tomorrow"),
        "a claim missing": sign(header, seat=None),
        "expired": sign(header, exp=claims["iat"] - tokens.LEEWAY - 1),
        "from the future": sign(header, iat=claims["iat"] + tokens.LEEWAY + 50),
    }
    for name, token in forged.items():
        assert await refusal(signer, token), name
    assert "expired" in await refusal(signer, forged["expired"])
    assert "future" in await refusal(signer, forged["from the future"])


async def test_clocks_may_differ_by_a_little(database: Signing) -> None:
    signer = Tokens(database, ISSUER)
    key = await stored(database, signer)
    good = (await signer.sign(TICKET, "ada", seat="7")).token
    claims = jwt.decode(good, key, ["ES256"]).claims
    header = {"alg": "ES256", "typ": TICKET.typ, "kid": key.kid}

    for changes in ({"exp": claims["iat"] - 5}, {"iat": claims["iat"] + 8}):
        await signer.verify(jwt.encode(header, {**claims, **changes}, key, ["ES256"]), TICKET)


async def test_a_remembered_token_expires_too(database: Signing) -> None:
    brief = Kind(TICKET.typ, TICKET.audience, -tokens.LEEWAY - 1, Ticket)
    signer = Tokens(database, ISSUER)
    token = (await signer.sign(brief, "ada", seat="7")).token

    for _ in range(2):
        assert "expired" in await refusal(signer, token)


async def test_time_is_the_databases(database: Signing) -> None:
    claims = await claims_of(Tokens(database, ISSUER))
    ((now,),) = await run_sql(database, "select extract(epoch from now())::int")

    assert abs(claims.iat - now) <= 2


async def claims_of(signer: Tokens) -> Ticket:
    return await signer.verify((await signer.sign(TICKET, "ada", seat="7")).token, TICKET)


async def test_a_fresh_key_is_published_before_it_signs(database: Signing) -> None:
    old = signed_with((await Tokens(database, ISSUER).sign(TICKET, "ada", seat="7")).token)
    await age(database, 3600)
    assert await database.transact(KEYS.rotate) == 1

    fresh = Tokens(database, ISSUER)
    new, _ = published(await fresh.jwks())
    assert new != old
    assert signed_with((await fresh.sign(TICKET, "ada", seat="7")).token) == old

    await age(database, SIGNS_AFTER)
    assert signed_with((await Tokens(database, ISSUER).sign(TICKET, "ada", seat="7")).token) == new


async def test_a_key_signs_only_when_whoever_remembers_the_set_without_it_has_forgotten_it() -> None:
    assert SIGNS_AFTER > PUBLISHED + tokens.REMEMBERED


async def test_an_old_key_is_kept_until_all_it_signed_has_expired(database: Signing) -> None:
    assert SIGNS_AFTER + tokens.REMEMBERED + tokens.LONGEST + tokens.LEEWAY < 86_400
    token = (await Tokens(database, ISSUER).sign(TICKET, "ada", seat="7")).token
    await database.transact(KEYS.rotate)
    await age(database, 86_400 - 60)
    assert await database.transact(KEYS.rotate) == 1
    await Tokens(database, ISSUER).verify(token, TICKET)

    await age(database, 120)
    assert await database.transact(KEYS.rotate) == 2
    assert "unknown key" in await refusal(Tokens(database, ISSUER), token)
    assert len(published(await Tokens(database, ISSUER).jwks())) == 3


async def test_the_only_key_signs_however_young_or_old_it_is(database: Signing) -> None:
    only = published(await Tokens(database, ISSUER).jwks())
    await age(database, 10**8)

    assert [signed_with((await Tokens(database, ISSUER).sign(TICKET, "ada", seat="7")).token)] == only


async def test_a_key_made_a_moment_ago_is_known_without_waiting(
    database: Signing, monkeypatch: pytest.MonkeyPatch
) -> None:
    here, there = Tokens(database, ISSUER), Tokens(database, ISSUER)
    await here.jwks()
    await run_sql(database, "delete from signing_keys")
    token = (await there.sign(TICKET, "ada", seat="7")).token
    monkeypatch.setattr(tokens, "REMEMBERED", 3600)

    async with asyncio.timeout(5):
        while True:
            with contextlib.suppress(InvalidToken):
                assert (await here.verify(token, TICKET)).seat == "7"
                break


async def test_a_deleted_key_ends_what_it_signed_even_where_that_is_remembered(
    database: Signing, monkeypatch: pytest.MonkeyPatch
) -> None:
    signer = Tokens(database, ISSUER)
    token = (await signer.sign(TICKET, "ada", seat="7")).token
    await signer.verify(token, TICKET)
    await run_sql(database, "delete from signing_keys")
    monkeypatch.setattr(tokens, "REMEMBERED", -1)

    assert "unknown key" in await refusal(signer, token)


async def test_a_remembered_token_needs_neither_the_database_nor_a_second_verification(
    database: Signing, monkeypatch: pytest.MonkeyPatch
) -> None:
    signer = Tokens(database, ISSUER)
    token = (await signer.sign(TICKET, "ada", seat="7")).token
    claims = await signer.verify(token, TICKET)
    await database.pool.close()

    assert await signer.verify(token, TICKET) is claims


async def test_what_is_remembered_stays_bounded(database: Signing, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tokens, "CAPACITY", 2)
    signer = Tokens(database, ISSUER)
    signed = [(await signer.sign(TICKET, "ada", seat=str(seat))).token for seat in range(3)]
    seen = [await signer.verify(token, TICKET) for token in signed]

    assert await signer.verify(signed[2], TICKET) is seen[2]
    assert await signer.verify(signed[0], TICKET) is not seen[0]


async def test_keys_sealed_under_another_secret_are_left_alone_and_replaced(
    database: Signing, database_url: str
) -> None:
    token = (await Tokens(database, ISSUER).sign(TICKET, "ada", seat="7")).token
    async with process(database_url, Secret(b"another secret of thirty-two char")) as other:
        with capture_logs() as logs:
            await claims_of(Tokens(other, ISSUER))
            assert "unknown key" in await refusal(Tokens(other, ISSUER), token)

    assert {entry["event"] for entry in logs} == {"a signing key was sealed under another secret key"}
    assert (await Tokens(database, ISSUER).verify(token, TICKET)).seat == "7"


async def test_the_database_holds_no_key_in_the_clear(database: Signing) -> None:
    key = await stored(database, Tokens(database, ISSUER))
    ((row,),) = await run_sql(database, "select convert_from(sealed, 'utf8') || kid from signing_keys")

    assert str(key.as_dict(private=True)["d"]) not in row


def encoded(content: bytes) -> str:
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


@hypothesis(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(header=headers, claims=st.binary(max_size=40), signature=st.binary(min_size=64, max_size=64))
async def test_no_text_is_worse_than_invalid(database: Signing, header: bytes, claims: bytes, signature: bytes) -> None:
    signer = Tokens(database, ISSUER)

    assert await refusal(signer, ".".join(map(encoded, (header, claims, signature))))
    assert await refusal(signer, claims.decode("latin-1"))
