"""The tokens of a shop: refreshed in time, by one at a time, and given up when the platform does not accept them."""

import asyncio
import time
from collections.abc import Sequence
from dataclasses import replace

import pytest
from msgspec import Struct

from holdfast.inventory.installs import sql
from holdfast.inventory.installs.access import ShopAccess, call_admin_api, shop_access
from holdfast.inventory.resources import Resources, Tx
from holdfast.inventory.service import INVENTORY
from holdfast.inventory.shopify.admin import Query
from holdfast.inventory.shopify.platform_client import PlatformRefusal, PlatformUnreachable
from holdfast.inventory.shopify.platform_tokens import GrantedTokens, TokenEndpoint
from holdfast.kit.background import leases
from holdfast.kit.background.leases import LEASE_SECONDS
from holdfast.kit.contract.problems import Problem
from holdfast.kit.operations import steps
from tests.helpers.events_service import eventually
from tests.helpers.locked_rows import wait_for_lock_waiters
from tests.helpers.platform_shop import CLIENT, DOMAIN, SECRET, PlatformScene


class AccessedShop(Struct):
    name: str


class AccessedShopData(Struct):
    shop: AccessedShop


NAME = Query("shop_name", "query { shop { name } }", AccessedShopData, cost=1)


class Endpoint(TokenEndpoint):
    """The token endpoint of the platform, and what refreshes were asked of it. The way to it fails as it is told."""

    def __init__(self, resources: Resources) -> None:
        super().__init__(resources.platform, CLIENT, SECRET)
        self.refresh_tokens: list[str] = []
        self.faults: list[Exception] = []
        self.loses = False
        self.token: str | None = None
        self.answers = asyncio.Event()
        self.answers.set()
        self.was_called = asyncio.Event()

    async def refreshed(self, shop: str, refresh_token: str) -> GrantedTokens:
        self.refresh_tokens.append(refresh_token)
        self.was_called.set()
        if self.faults:
            raise self.faults.pop(0)
        await self.answers.wait()
        granted = await super().refreshed(shop, refresh_token)
        if self.loses:
            self.loses = False
            raise PlatformUnreachable("The answer was lost.")
        if self.token:
            granted.access_token, self.token = self.token, None
        return granted


@pytest.fixture
async def endpoint(scene: PlatformScene) -> Endpoint:
    await scene.install()
    await scene.inventory.sql("update platform_tokens set generation = 1")  # so that the tests can count from it
    database = scene.inventory.database
    endpoint = Endpoint(database.resources)
    database.resources = replace(database.resources, token_endpoint=endpoint)
    return endpoint


async def ends_in(scene: PlatformScene, seconds: float) -> None:
    """Let the access token of the shop end in this many seconds, and nobody have the lease."""
    await scene.inventory.sql(
        f"update platform_tokens set expires_at = now() + {seconds} * interval '1 second', leased_until = null"
    )


async def get(scene: PlatformScene) -> ShopAccess:
    return await shop_access(scene.steps, (await scene.find_shop()).id)


async def get_at_once(scene: PlatformScene, times: int) -> Sequence[ShopAccess]:
    return await asyncio.gather(*(get(scene) for _ in range(times)))


async def test_a_token_is_used_until_a_minute_before_its_end(scene: PlatformScene, endpoint: Endpoint) -> None:
    await ends_in(scene, 70)
    before = await get(scene)
    await ends_in(scene, 59)
    after = await get(scene)

    assert (before.generation, after.generation, len(endpoint.refresh_tokens)) == (1, 2, 1)
    assert after.token != before.token
    assert (await call_admin_api(scene.steps, (await scene.find_shop()).id, NAME)).shop.name


async def test_many_calls_that_need_a_fresh_token_fetch_it_once(scene: PlatformScene, endpoint: Endpoint) -> None:
    await ends_in(scene, 0)

    accesses = await get_at_once(scene, 20)

    assert {access.generation for access in accesses} == {2}
    assert len(endpoint.refresh_tokens) == 1


async def test_two_processes_make_one_call_for_a_fresh_token(scene: PlatformScene, endpoint: Endpoint) -> None:
    await ends_in(scene, 0)
    shop = await scene.find_shop()
    other = INVENTORY.database(scene.inventory.settings)
    other.resources = replace(other.resources, token_endpoint=endpoint)
    async with other.pool:
        both = (scene.steps, steps.Steps(other))
        accesses = await asyncio.gather(*(shop_access(process, shop.id) for process in both * 5))

    assert {access.generation for access in accesses} == {2}
    assert len(endpoint.refresh_tokens) == 1


async def test_a_valid_token_is_used_while_another_process_refreshes_it(
    scene: PlatformScene, endpoint: Endpoint
) -> None:
    await ends_in(scene, 30)
    await scene.inventory.sql("update platform_tokens set leased_until = now() + interval '1 hour'")

    assert (await get(scene)).generation == 1
    assert endpoint.refresh_tokens == []


async def test_a_lease_whose_process_died_ends(scene: PlatformScene, endpoint: Endpoint) -> None:
    await ends_in(scene, 0)
    await scene.inventory.sql("update platform_tokens set leased_until = now() - interval '1 second'")

    assert (await get(scene)).generation == 2


async def test_a_process_that_was_killed_keeps_the_tokens_of_a_shop_for_ten_seconds_at_most(
    scene: PlatformScene, endpoint: Endpoint
) -> None:
    await ends_in(scene, 0)
    endpoint.answers.clear()
    refreshing = asyncio.create_task(get(scene))
    await endpoint.was_called.wait()

    [(seconds,)] = await scene.inventory.sql(
        "select extract(epoch from leased_until - clock_timestamp()) from platform_tokens"
    )
    endpoint.answers.set()
    await refreshing

    assert 0 < seconds <= LEASE_SECONDS


async def test_a_refresh_that_takes_longer_than_a_lease_is_made_once(
    scene: PlatformScene, endpoint: Endpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(leases, "LEASE_SECONDS", 1.5)
    monkeypatch.setattr(leases, "RENEW_SECONDS", 0.1)
    await ends_in(scene, 0)
    endpoint.answers.clear()
    began = time.monotonic()
    refreshing = asyncio.create_task(get_at_once(scene, 5))
    await eventually(lambda: time.monotonic() > began + 2)
    endpoint.answers.set()
    accesses = await refreshing

    assert ({access.generation for access in accesses}, len(endpoint.refresh_tokens)) == ({2}, 1)


async def test_a_refresh_of_an_ended_install_leaves_the_tokens_of_the_next_one(
    scene: PlatformScene, endpoint: Endpoint
) -> None:
    await ends_in(scene, 0)
    endpoint.answers.clear()
    refreshing = asyncio.create_task(get(scene))
    await endpoint.was_called.wait()
    scene.platform.uninstall(DOMAIN)
    shop = await scene.find_shop()
    await scene.inventory.database.transact(lambda tx: sql.end_install(tx, shop.id))
    await scene.install()
    [(later,)] = await scene.inventory.sql("select generation from platform_tokens")

    endpoint.answers.set()
    await asyncio.gather(refreshing, return_exceptions=True)

    assert await scene.row("broken") == (None,)
    assert await scene.row("generation", "platform_tokens") == (later,)
    assert (await call_admin_api(scene.steps, shop.id, NAME)).shop.name


async def test_a_lost_answer_is_requested_again_with_the_same_refresh_token(
    scene: PlatformScene, endpoint: Endpoint
) -> None:
    await ends_in(scene, 0)
    endpoint.loses = True
    with pytest.raises(PlatformUnreachable, match="lost"):
        await get(scene)
    await ends_in(scene, 0)

    access = await get(scene)

    assert endpoint.refresh_tokens[0] == endpoint.refresh_tokens[1]
    assert (access.generation, len(endpoint.refresh_tokens)) == (2, 2)
    assert (await call_admin_api(scene.steps, (await scene.find_shop()).id, NAME)).shop.name


async def test_an_old_token_is_used_until_its_end_while_the_platform_is_unreachable(
    scene: PlatformScene, endpoint: Endpoint
) -> None:
    await ends_in(scene, 30)
    endpoint.faults = [PlatformUnreachable("The platform is away.")] * 2

    assert (await get(scene)).generation == 1
    await ends_in(scene, 3)
    with pytest.raises(PlatformUnreachable, match="away"):
        await get(scene)


async def test_a_refresh_token_that_is_not_valid_ends_the_access_and_says_what_to_do(
    scene: PlatformScene, endpoint: Endpoint
) -> None:
    await ends_in(scene, 0)
    endpoint.faults = [PlatformRefusal("status 400: expired", "invalid_grant")]

    for _ in range(2):
        with pytest.raises(Problem, match=r"must be connected again\. The access to the shop was not used") as refusal:
            await get(scene)
        assert refusal.value.code == "shop_not_connected"

    assert await scene.inventory.sql("select from platform_tokens") == []
    assert len(endpoint.refresh_tokens) == 1
    await scene.install()
    assert (await get(scene)).token


async def test_a_refused_refresh_does_not_end_an_install_that_came_meanwhile(
    scene: PlatformScene, endpoint: Endpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    await ends_in(scene, 0)

    async def refuses_late(*_: object) -> GrantedTokens:
        await scene.install()
        raise PlatformRefusal("status 400: expired", "invalid_grant")

    monkeypatch.setattr(endpoint, "refreshed", refuses_late)

    access = await get(scene)

    assert await scene.row("broken") == (None,)
    assert await scene.row("generation", "platform_tokens") == (access.generation,)


async def test_a_wrong_client_secret_costs_no_shop_its_tokens(scene: PlatformScene, endpoint: Endpoint) -> None:
    await ends_in(scene, 0)
    endpoint.faults = [PlatformRefusal("status 401: Client authentication failed.", "invalid_client")]
    with pytest.raises(PlatformRefusal):
        await get(scene)
    await ends_in(scene, 0)

    assert (await get(scene)).generation == 2


async def test_a_token_that_the_shop_does_not_accept_is_refreshed_once_and_then_used(
    scene: PlatformScene, endpoint: Endpoint
) -> None:
    database = scene.inventory.database
    secret = database.resources.secret
    tokens = secret.unseal((await scene.row("sealed", "platform_tokens"))[0])
    wrong = secret.seal(tokens.replace('"access_token":"', '"access_token":"not_'))
    await scene.inventory.sql("update platform_tokens set sealed = %(sealed)s", sealed=wrong)

    answer = await call_admin_api(scene.steps, (await scene.find_shop()).id, NAME)

    assert answer.shop.name
    assert len(endpoint.refresh_tokens) == 1


async def test_a_fresh_token_that_the_shop_does_not_accept_yet_is_kept(
    scene: PlatformScene, endpoint: Endpoint
) -> None:
    await ends_in(scene, 0)
    endpoint.token = "not known yet"
    await get(scene)
    endpoint.token = "not known yet either"

    with pytest.raises(PlatformUnreachable, match="fresh access token yet"):
        await call_admin_api(scene.steps, (await scene.find_shop()).id, NAME)
    assert (await call_admin_api(scene.steps, (await scene.find_shop()).id, NAME)).shop.name
    assert await scene.row("broken") == (None,)


async def test_a_token_that_was_withdrawn_ends_the_access(scene: PlatformScene, endpoint: Endpoint) -> None:
    scene.platform.oauth.revoke(DOMAIN)

    with pytest.raises(Problem) as refusal:
        await call_admin_api(scene.steps, (await scene.find_shop()).id, NAME)

    assert refusal.value.code == "shop_not_connected"
    assert "was withdrawn" in (await scene.row("broken"))[0]


async def test_tokens_that_another_secret_sealed_end_the_access(scene: PlatformScene, endpoint: Endpoint) -> None:
    await scene.inventory.sql("update platform_tokens set sealed = 'another'")

    with pytest.raises(Problem, match="another secret key"):
        await get(scene)


async def test_tokens_that_another_secret_sealed_are_good_again_when_the_secret_comes_back(
    scene: PlatformScene, endpoint: Endpoint
) -> None:
    [(sealed,)] = await scene.inventory.sql("select sealed from platform_tokens")
    await scene.inventory.sql("update platform_tokens set sealed = 'another'")
    with pytest.raises(Problem, match="another secret key"):
        await get(scene)

    await scene.inventory.sql("update platform_tokens set sealed = %(sealed)s", sealed=sealed)
    await ends_in(scene, 0)

    assert (await get(scene)).generation == 2
    assert await scene.row("broken") == (None,)


async def test_unreadable_tokens_do_not_end_an_install_that_has_replaced_them(
    scene: PlatformScene, endpoint: Endpoint
) -> None:
    shop = await scene.find_shop()
    secret = scene.inventory.database.resources.secret
    [(sealed,)] = await scene.inventory.sql("select sealed from platform_tokens")
    await scene.inventory.sql("update platform_tokens set sealed = 'another'")

    async def install(tx: Tx) -> None:
        await sql.lock_install(tx, shop.id)
        reading = asyncio.create_task(get(scene))
        await wait_for_lock_waiters(scene.inventory.sql)
        await sql.store_tokens(tx, shop.id, secret.reseal(sealed), GrantedTokens("", ""))
        tasks.append(reading)

    tasks: list[asyncio.Task[ShopAccess]] = []
    await scene.inventory.database.transact(install)

    assert (await tasks[0]).token
    assert await scene.row("broken") == (None,)


async def test_tokens_that_do_not_end_are_used_and_cannot_be_refreshed(
    scene: PlatformScene, endpoint: Endpoint
) -> None:
    shop = await scene.find_shop()
    secret = scene.inventory.database.resources.secret
    await scene.inventory.sql(
        "update platform_tokens set expires_at = null, sealed = %(sealed)s",
        sealed=secret.seal('{"access_token":"shpat_custom","refresh_token":null}'),
    )

    assert (await get(scene)).token == "shpat_custom"
    with pytest.raises(Problem, match="cannot be refreshed"):
        await call_admin_api(scene.steps, shop.id, NAME)


async def test_work_inside_a_shop_has_the_tokens_of_that_shop_alone(scene: PlatformScene, endpoint: Endpoint) -> None:
    shop, other = await scene.find_shop(), await scene.inventory.create_shop()
    await ends_in(scene, 0)
    inside = steps.Steps(scene.inventory.database, shop.id)

    assert (await call_admin_api(inside, shop.id, NAME)).shop.name
    with pytest.raises(Problem, match="not connected"):
        await call_admin_api(steps.Steps(scene.inventory.database, other.id), shop.id, NAME)
