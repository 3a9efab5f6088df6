"""API keys: random, stored as hashes, looked up together, and revoked everywhere at once."""

import asyncio
import contextlib
import hashlib
import re
import string
from collections.abc import AsyncGenerator, Mapping, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.events.keys.operations import find_callers, mask
from holdfast.events.resources import Reader
from holdfast.events.settings import Settings
from holdfast.kit.contract.caller import Caller
from holdfast.kit.contract.problems import Problem
from holdfast.kit.security import api_keys
from holdfast.kit.security.api_keys import KeyRing, digest, new_key
from tests.helpers.events_service import Client, Service, running_events


class Finder:
    """Finds callers in the database, and notes how many hashes every look-up asked for."""

    def __init__(self) -> None:
        self.sizes: list[int] = []

    async def find(self, reader: Reader, hashes: Sequence[bytes]) -> Mapping[bytes, Caller | Problem]:
        self.sizes.append(len(hashes))
        return await find_callers(reader, hashes)


async def create_key(client: Client, name: str = "One more") -> tuple[int, str]:
    """The id and the secret of a new key of the client's organizer."""
    response = await client.post("/api/keys", {"api_key": {"name": name}})
    assert response.status_code == 201, response.text
    return response.json()["data"]["id"], response.json()["data"]["key"]


async def code_of(ring: KeyRing, key: str | None) -> str:
    with pytest.raises(Problem) as refusal:
        await ring.caller(key)
    assert refusal.value.status == 401
    return refusal.value.code


@contextlib.asynccontextmanager
async def two_processes(settings: Settings) -> AsyncGenerator[tuple[Service, Service]]:
    async with running_events(settings) as one, running_events(settings) as other:
        await one.wait_for_notices()
        await other.wait_for_notices()
        yield one, other


def test_an_api_key_is_a_prefix_and_43_characters_safe_in_headers_and_urls() -> None:
    made = [new_key() for _ in range(200)]

    assert all(re.fullmatch(r"hf_[A-Za-z0-9_-]{43}", key) for key in made)
    assert len(set(made)) == 200
    # All of them are random: none stays the same from key to key.
    assert all(len({key[place] for key in made}) > 10 for place in range(3, 46))


def test_only_the_first_8_characters_of_a_key_are_shown() -> None:
    key = new_key()

    assert mask(key[:8]) == f"{key[:8]}********"


async def test_the_database_holds_the_hash_of_a_key_and_nothing_else_of_it(service: Service) -> None:
    ada = await service.organizer()
    assert ada.key
    stored = await service.run_sql("select start, hash, api_keys::text from api_keys")

    assert [(start, bytes(hash)) for start, hash, _ in stored] == [
        (ada.key[:8], hashlib.sha256(ada.key.encode()).digest())
    ]
    assert all(ada.key[8:] not in row for _, _, row in stored)


async def test_a_key_leads_to_its_caller(service: Service) -> None:
    ada, admin = await service.organizer(), await service.admin()
    ring = KeyRing(service.database, find_callers)

    organizer, unrestricted = await ring.caller(ada.key), await ring.caller(admin.key)

    assert (organizer.tenant_id, organizer.is_admin) == (ada.id, False)
    assert (unrestricted.tenant_id, unrestricted.is_admin) == (None, True)


@pytest.mark.parametrize("key", [None, ""])
async def test_a_missing_key_is_refused_as_missing(service: Service, key: str | None) -> None:
    finder = Finder()

    assert await code_of(KeyRing(service.database, finder.find), key) == "missing_api_key"
    assert finder.sizes == []


async def test_a_text_that_does_not_look_like_a_key_is_refused_without_a_look_up(service: Service) -> None:
    finder = Finder()
    ring = KeyRing(service.database, finder.find)
    key = new_key()

    for wrong in (key[:-1], f"{key}A", key.upper(), f"{key}\n", f" {key}", key[3:], "hf_" + "é" * 43, "x" * 100_000):
        assert await code_of(ring, wrong) == "invalid_api_key"
    assert finder.sizes == []


async def test_an_unknown_key_is_refused(service: Service) -> None:
    assert await code_of(KeyRing(service.database, find_callers), new_key()) == "invalid_api_key"


async def test_look_ups_that_come_at_once_share_one_statement(service: Service) -> None:
    ada = await service.organizer()
    known = [(await create_key(ada))[1] for _ in range(5)]
    finder = Finder()
    ring = KeyRing(service.database, finder.find)

    callers = await asyncio.gather(
        *(ring.caller(key) for key in (*known, *(new_key() for _ in range(20)), *known)), return_exceptions=True
    )

    assert [caller.tenant_id for caller in callers if isinstance(caller, Caller)] == [ada.id] * 10
    assert [caller.code for caller in callers if isinstance(caller, Problem)] == ["invalid_api_key"] * 20
    assert finder.sizes == [25]  # the same key is looked up once


@pytest.mark.usefixtures("only_notices_end_caches")
async def test_a_revoked_key_is_refused_at_once_by_every_process(settings: Settings) -> None:
    async with two_processes(settings) as (one, other):
        ada = await one.organizer()
        id, secret = await create_key(ada)
        clients = [Client(process.http, secret) for process in (one, other)]
        assert [(await client.get("/api/events")).status_code for client in clients] == [200, 200]

        assert (await ada.delete(f"/api/keys/{id}")).status_code == 204

        for client in clients:
            async with asyncio.timeout(5):
                while (response := await client.get("/api/events")).status_code == 200:
                    pass
            assert (response.status_code, response.json()["code"]) == (401, "invalid_api_key")
        for process in (one, other):
            assert (await Client(process.http, ada.key).get("/api/events")).status_code == 200


@pytest.mark.usefixtures("only_notices_end_caches")
async def test_a_listener_that_may_have_missed_a_revocation_forgets_every_key(settings: Settings) -> None:
    async with two_processes(settings) as (one, other):
        ada = await one.organizer()
        _, secret = await create_key(ada)
        client = Client(other.http, secret)
        assert (await client.get("/api/events")).status_code == 200

        await one.run_sql(
            "update api_keys set active = false, revoked_at = now() where start = %(start)s", start=secret[:8]
        )
        await one.run_sql(
            "select pg_terminate_backend(pid) from pg_stat_activity"
            " where right(application_name, 9) = ' listener' and datname = current_database()"
        )

        async with asyncio.timeout(5):
            while (response := await client.get("/api/events")).status_code == 200:
                pass
        assert response.json()["code"] == "invalid_api_key"


@pytest.mark.usefixtures("only_notices_end_caches")
async def test_a_revocation_during_a_look_up_is_not_undone_by_it(service: Service) -> None:
    await service.wait_for_notices()
    ada = await service.organizer()
    id, secret = await create_key(ada)
    looked_up, resume, revoked = asyncio.Event(), asyncio.Event(), asyncio.Event()

    async def find(reader: Reader, hashes: Sequence[bytes]) -> Mapping[bytes, Caller | Problem]:
        callers = await find_callers(reader, hashes)
        looked_up.set()
        await resume.wait()
        return callers

    ring = KeyRing(service.database, find)
    with ring.forgetting(), service.database.listen(api_keys.CHANNEL, lambda _: revoked.set()):
        async with asyncio.timeout(5):
            during = asyncio.create_task(ring.caller(secret))
            await looked_up.wait()
            assert (await ada.delete(f"/api/keys/{id}")).status_code == 204
            await revoked.wait()
            resume.set()
            await asyncio.wait([during])

        assert await code_of(ring, secret) == "invalid_api_key"


@given(st.text(alphabet=string.printable, max_size=60))
def test_a_hash_is_that_of_the_whole_key(key: str) -> None:
    assert digest(key) == hashlib.sha256(key.encode()).digest()
