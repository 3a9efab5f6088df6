"""Three shops sell while processes are killed, and the platform and its webhooks misbehave: in the end all books agree.

`HOLDFAST_SOAK=1` (make soak) lets 10,000 things happen and kills a hundred times; otherwise there are fewer.
"""

import asyncio
import contextlib
import os
import random
import subprocess
from collections import Counter
from collections.abc import AsyncGenerator, Generator, Mapping, Sequence
from pathlib import Path
from typing import Any

import httpx2
import pytest

from holdfast.inventory.installs.model import ShopTask
from holdfast.inventory.orders.catching_up import catch_up
from holdfast.inventory.partner_webhooks import sql as partner_webhooks
from holdfast.inventory.shopify.platform_client import PlatformUnreachable
from holdfast.inventory.sync import levels
from holdfast.inventory.sync import operations as sync
from holdfast.kit.operations.steps import Steps
from holdfast.kit.security.http_client import HttpClient
from tests.helpers.events_service import eventually
from tests.helpers.inventory_service import Inventory, Shop, running_inventory, unlimited
from tests.helpers.processes import HOLDFAST, Process, port_that_stays_free, running_processes
from tests.helpers.serving import PLAIN

CLIENT, SECRET = "client-tests", "shpss_tests"
HONEY = {"Single": 1001, "6-pack": 1006, "12-pack": 1012}
TEA = {"100 g": 2001, "250 g": 2002}
KIT = {"Breakfast": 3001}
VARIANTS = [*HONEY.values(), *TEA.values(), *KIT.values()]
"""The ids of variants. Each shop has the same, as the shops of the real platform never do."""

MAX_RECENT_ORDERS = 6
"""The number of orders that may still be changed. It is small: many changes of one order come close together."""


class TradeRefusal(Exception):
    """The platform did not let a customer or a merchant do this; the message says why."""


class Platform:
    """The double, which is never killed. `address`: where it is."""

    def __init__(self, address: str, http: httpx2.AsyncClient) -> None:
        self.address = address
        self._http = http

    async def ask(self, action: str, /, **arguments: Any) -> Any:
        """Let something happen at the platform. Raises `TradeRefusal`."""
        answer = await self._http.post(f"/_test/{action}", json=arguments)
        if answer.status_code == 409:
            raise TradeRefusal(answer.json()["error"])
        assert answer.status_code == 200, answer.text
        return answer.json()


@contextlib.asynccontextmanager
async def platform(directory: Path, app_address: str) -> AsyncGenerator[Platform]:
    """A platform that keeps its state in a file, for as long as the block lasts."""
    with _run_double(directory, app_address) as address:
        async with HttpClient(base_url=address, verify=PLAIN, trust_env=False, timeout=60) as http:
            yield Platform(address, http)


@contextlib.contextmanager
def _run_double(directory: Path, app_address: str) -> Generator[str]:
    words = ["--port", "0", "--for-tests", "--app-address", app_address, "--file", str(directory / "shops.sqlite")]
    words += ["--client-id", CLIENT, "--client-secret", SECRET]
    program = [HOLDFAST, "inventory", "platform-double", *words]
    with (
        (directory / "platform.log").open("w") as log,
        subprocess.Popen(program, stdout=subprocess.PIPE, stderr=log, text=True) as process,
    ):
        assert process.stdout is not None
        try:
            yield process.stdout.readline().split()[-1]
        finally:
            process.kill()


class Trade:
    """What happens in one shop, at random.

    edited     by variant, how many units a merchant has added to its level by hand, all in all
    """

    def __init__(self, platform: Platform, domain: str, seed: int) -> None:
        self.domain = domain
        self.edited: Counter[int] = Counter()
        self.done: Counter[str] = Counter()
        self._platform = platform
        self._random = random.Random(seed)
        self._recent_orders: list[dict[str, Any]] = []
        self._locations: list[int] = []

    async def open(self, locations: int) -> None:
        """Open the shop with this many locations, and put everything into it that is sold."""
        await self._ask("open", points=2_000)
        for number in range(1, locations):
            await self._ask("add-location", name=f"Shop {number}")
        self._locations = [location["id"] for location in await self._ask("locations")]
        stock = {str(location): 0 for location in self._locations}
        for title, variants in (("Honey jars", HONEY), ("Green tea", TEA), ("Kit", KIT)):
            new = [[name, f"SKU-{id}", "6.00", "DENY", True, False, stock, id] for name, id in variants.items()]
            await self._ask("add-product", title=title, variants=new)

    async def take_actions(self, count: int) -> None:
        """Let a number of things happen."""
        while count:
            actions = {
                self._sell: 9,
                self._edit: 4,
                self._refund: 3,
                self._cancel: 2,
                self._send: 3,
                self._recount: 1,
            }
            [action] = self._random.choices([*actions], [*actions.values()])
            try:
                await action()
            except TradeRefusal:
                self.done["impossible"] += 1
            else:
                self.done[action.__name__.strip("_")] += 1
                count -= 1

    async def _ask(self, action: str, /, **arguments: Any) -> Any:
        return await self._platform.ask(action, shop=self.domain, **arguments)

    def _random_lines(self, most: int = 3) -> list[list[int]]:
        """Lines of a new order."""
        chosen = self._random.choices(VARIANTS, k=self._random.randint(1, most))
        return [[variant, self._random.randint(1, 3)] for variant in chosen]

    def _random_order(self) -> dict[str, Any]:
        if not self._recent_orders:
            raise TradeRefusal("There is no order yet.")
        return self._random.choice(self._recent_orders)

    def _random_line(self, order: dict[str, Any]) -> dict[str, Any]:
        return self._random.choice(order["lines"])

    def _coin_is_heads(self) -> bool:
        return self._random.random() < 0.5

    def _remember(self, order: dict[str, Any]) -> None:
        """Remember what an order is like now."""
        others: Sequence[dict[str, Any]] = [recent for recent in self._recent_orders if recent["id"] != order["id"]]
        self._recent_orders = [*others, order][-MAX_RECENT_ORDERS:]

    async def _sell(self) -> None:
        location = self._random.choice(self._locations) if self._random.random() < 0.2 else None
        anyway = self._random.random() < 0.3
        self._remember(await self._ask("sell", lines=self._random_lines(), even_if_sold_out=anyway, till=location))

    async def _edit(self) -> None:
        order = self._random_order()
        line = self._random_line(order)
        quantity = self._random.randint(line["fulfilled"], line["current"] + 2)
        added = self._random_lines(1) if self._random.random() < 0.4 else []
        change = [line["id"], quantity, self._coin_is_heads()]
        self._remember(await self._ask("edit", order=order["id"], lines=[change], added=added))

    async def _refund(self) -> None:
        order = self._random_order()
        line = self._random_line(order)
        quantity = self._random.randint(1, max(1, line["current"]))
        await self._ask("refund", order=order["id"], lines=[[line["id"], quantity, self._coin_is_heads()]])
        line["current"] -= quantity
        line["fulfilled"] = min(line["fulfilled"], line["current"])

    async def _cancel(self) -> None:
        self._remember(await self._ask("cancel", order=self._random_order()["id"], restock=self._coin_is_heads()))

    async def _send(self) -> None:
        self._remember(await self._ask("send", order=self._random_order()["id"]))

    async def _recount(self) -> None:
        """Count a variant by hand, and find another number than the platform has."""
        variant = self._random.choice(VARIANTS)
        location = self._random.choice(self._locations)
        seen = (await self._ask("levels"))[str(variant)][str(location)]
        counted = max(0, seen + self._random.choice([-2, -1, 1, 2, 3]))
        _, _, _, available, _, before, *_ = await self._ask(
            "count", variant=variant, location=location, available=counted
        )
        self.edited[variant] += available - before


SOAK = "HOLDFAST_SOAK" in os.environ
KILLS = 100 if SOAK else 6
ACTION_COUNT = 10_000 if SOAK else 150
TIMEOUT_SECONDS = 3_000 if SOAK else 500
LONG_SECONDS = 35.0 if SOAK else 2.0
"""How long slow answers may take: longer than the service waits for them, where there is time for it."""

STOCK = 20_000 if SOAK else 300
HONEY_UNITS = dict(zip(HONEY.values(), (1, 6, 12), strict=True))
TEA_UNITS = dict(zip(TEA.values(), (2, 5), strict=True))
[KIT_ID] = KIT.values()
UNITS = ({**HONEY_UNITS, KIT_ID: 2}, {**TEA_UNITS, KIT_ID: 1})
"""How many units one of each variant takes of the pool of honey, and of the pool of tea."""

POLICIES = (("adopt", "adopt"), ("enforce", "adopt"), ("adopt", "flag"))
"""What becomes of edits in the two pools of each shop."""

LOCATIONS = (2, 1, 3)
"""How many locations each shop has. Each of them shows the whole quantity."""

FAULTS = ("throttle", "before", "after", "down", "slow", "half", "stale", "shifted", "busy", "away", "failing")


class TradingShop:
    """A shop that has the app: what happens there, and its pools."""

    def __init__(self, trade: Trade, agent: Shop, policies: tuple[str, str]) -> None:
        self.trade = trade
        self.agent = agent
        self.policies = policies
        self.pools: list[int] = []

    async def begin(self) -> None:
        """Make the pools."""
        for name, units, policy in zip(("Honey", "Tea"), UNITS, self.policies, strict=True):
            members = [
                {"variant_gid": f"gid://shopify/ProductVariant/{id}", "units_per_sale": count}
                for id, count in units.items()
            ]
            pool = await self.agent.create_pool(STOCK, name=name, members=members)
            await self.agent.call("update_pool", pool_id=pool["id"], policy=policy)
            self.pools.append(pool["id"])


async def test_orders_pools_and_levels_agree_whatever_is_killed_and_however_the_platform_behaves(
    inventory_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    base_url = f"http://127.0.0.1:{port_that_stays_free()}"
    async with platform(tmp_path, base_url) as shop_platform, asyncio.timeout(TIMEOUT_SECONDS):
        known = {"client_id": CLIENT, "client_secret": SECRET, "platform_address": f"{shop_platform.address}/{{shop}}"}
        for name, value in known.items():
            prefix = "" if name == "platform_address" else "INVENTORY_"
            monkeypatch.setenv(f"{prefix}{name.upper()}", value)
        monkeypatch.setenv("INVENTORY_BASE_URL", base_url)
        settings = unlimited(inventory_url, tmp_path, base_url=base_url, **known)
        with (
            running_processes(inventory_url, tmp_path, 1, service="inventory", base_url=base_url) as first,
            running_processes(inventory_url, tmp_path, 1, service="inventory") as second,
        ):
            async with running_inventory(settings) as inventory:
                shops = [await install(shop_platform, inventory, number) for number in range(3)]
                await eventually(lambda: all_shops_are_imported(inventory), seconds=30)
                for shop in shops:
                    await offer_all_everywhere(inventory, shop.agent)
                    await shop.begin()
                for number in range(KILLS):
                    await disturb_platform(shop_platform, number)
                    await asyncio.gather(
                        kill([*first, *second], inventory, number),
                        *(shop.trade.take_actions(ACTION_COUNT // KILLS // 3 + 1) for shop in shops),
                    )
                    if random.random() < 0.2:
                        with contextlib.suppress(PlatformUnreachable):
                            await catch_up(Steps(inventory.database), ShopTask(random.choice(shops).agent.id))
                await wait_until_all_agree(shop_platform, inventory, shops)

                for shop in shops:
                    await assert_books_agree(shop_platform, inventory, shop)
                assert await inventory.ledger_differences() == []
                [(deadlocks,)] = await inventory.sql(
                    "select deadlocks from pg_stat_database where datname = current_database()"
                )
                print(
                    f"{KILLS} kills, {deadlocks} deadlocks",
                    *(dict(shop.trade.done) for shop in shops),
                    sep="\n",
                )


async def install(shop_platform: Platform, inventory: Inventory, number: int) -> TradingShop:
    """Open a shop, and install the app there as the platform can by itself."""
    domain = f"shop-{number}.myshopify.com"
    trade = Trade(shop_platform, domain, number)
    await trade.open(LOCATIONS[number])
    await shop_platform.ask("install", shop=domain)
    token = await shop_platform.ask("session-token", shop=domain)
    answer = await inventory.http.post("/auth/session", headers={"authorization": f"Bearer {token}"})
    assert answer.status_code == 200, answer.text
    [(id,)] = await inventory.sql("select id from shops where domain = %(domain)s", domain=domain)
    agent = Shop(inventory.http, inventory.settings, id, domain, answer.json()["api_key"])
    return TradingShop(trade, agent, POLICIES[number])


async def offer_all_everywhere(inventory: Inventory, shop: Shop) -> None:
    """Let each location of a shop have the whole quantity: so all levels are set, and edits of all are seen."""
    await inventory.database.transact(lambda tx: sync.spread(tx, shop.id, ()), shop.id)


async def all_shops_are_imported(inventory: Inventory) -> bool:
    """Whether every shop is imported, and the platform tells of all of them."""
    [(left,)] = await inventory.sql(
        "select count(*) from procrastinate_jobs where task_name in ('subscribe_shop', 'import_catalog')"
        " and status in ('todo', 'doing')"
    )
    return left == 0


async def disturb_platform(shop_platform: Platform, number: int) -> None:
    """Let webhooks be lost, doubled, late and in another order, and requests go wrong."""
    await shop_platform.ask("webhook_delays", seed=number, lost=10, doubled=20, late=random.choice([0, 1, 3]))
    await shop_platform.ask("webhooks", haste=20.0, newest_first=random.random() < 0.3)
    for kind in random.choices(FAULTS, k=5):
        operation = random.choice(["", "SetLevels", "AdjustLevels", "ReadLevels", "ReadItemLevels", "Order"])
        seconds = LONG_SECONDS if random.random() < 0.1 else 1.0
        await shop_platform.ask("plan", kind=kind, operation=operation, times=random.randint(1, 2), seconds=seconds)


async def kill(processes: list[Process], inventory: Inventory, number: int) -> None:
    """Kill a process at a random moment, and start it again."""
    await asyncio.sleep(random.uniform(0, 0.7))
    process = random.choice(processes)
    process.kill()
    await asyncio.to_thread(process.start)
    await skip_waits(inventory, graces=number % 3 == 0)


async def skip_waits(inventory: Inventory, *, graces: bool) -> None:
    """Let the time pass that processes wait for what a killed one had begun with; or also for what is unexplained."""
    # Each in a transaction that is tried again after a deadlock with the processes that are at work.
    transact = inventory.database.transact
    await transact(lambda tx: tx.run("update webhooks set due_at = now() where due_at > now() and handled_at is null"))
    await transact(lambda tx: tx.run("update syncs set leased_until = null, due_at = now()"))
    if graces:
        await transact(lambda tx: tx.run("update levels set suspect_at = now() where suspect_at is not null"))
    await transact(lambda tx: tx.notify(partner_webhooks.CHANNEL))
    await transact(lambda tx: tx.notify(levels.LEVELS_CHANNEL))


async def wait_until_all_agree(shop_platform: Platform, inventory: Inventory, shops: Sequence[TradingShop]) -> None:
    """Let everything arrive, catch up with what never does, and have every level read once more."""
    await shop_platform.ask("heal")
    await shop_platform.ask("webhook_delays")
    await shop_platform.ask("webhooks", haste=100.0, newest_first=False)

    async def all_is_handled() -> bool:
        [(left,)] = await inventory.sql("select count(*) from webhooks where handled_at is null")
        return left == 0 and await shop_platform.ask("waiting") == 0

    await eventually(all_is_handled, seconds=TIMEOUT_SECONDS)
    for shop in shops:
        await catch_up(Steps(inventory.database), ShopTask(shop.agent.id))

    async def nothing_is_different() -> bool:
        different = 0
        for shop in shops:
            for pool_id, policy in zip(shop.pools, shop.policies, strict=True):
                drift = (await shop.agent.call("reconcile", pool_id=pool_id, dry_run=False))["drift"]
                different += len(drift)
                if drift and policy == "flag":
                    await shop.agent.call("resync", pool_id=pool_id)
        return different == 0

    await eventually(nothing_is_different, seconds=TIMEOUT_SECONDS)


async def assert_books_agree(shop_platform: Platform, inventory: Inventory, shop: TradingShop) -> None:
    """Compare the books of a shop with what the platform has."""
    orders = await shop_platform.ask("orders", shop=shop.agent.domain)
    rows = await inventory.sql(
        "select pool_id, kind::text, source_ref, sum(delta)::bigint, min(length(reason)) from ledger"
        " where shop_id = %(shop_id)s group by 1, 2, 3",
        shop_id=shop.agent.id,
    )
    present: list[int] = []
    for pool_id, units, policy in zip(shop.pools, UNITS, shop.policies, strict=True):
        units_by_order = {f"gid://shopify/Order/{order['id']}": units_of(order, units) for order in orders}
        counted: Counter[str] = Counter()
        adopted = 0
        for pool, kind, source, delta, _ in rows:
            if pool == pool_id and kind in {"sale", "cancel"}:
                counted[source] -= delta
            elif pool == pool_id and kind == "external_edit":
                adopted += delta
        assert {gid: count for gid, count in counted.items() if count} == {
            gid: count for gid, count in units_by_order.items() if count
        }
        edited = sum(count * units[id] for id, count in shop.trade.edited.items() if id in units and id != KIT_ID)
        assert adopted == (edited if policy == "adopt" else 0)
        on_hand = await shop.agent.on_hand(pool_id)
        assert on_hand == STOCK - sum(units_by_order.values()) + adopted
        present.append(on_hand)
    sources = [(source, reason) for _, kind, source, _, reason in rows if kind in {"sale", "cancel", "external_edit"}]
    assert len(rows) - len(sources) == len(shop.pools)  # what was there at first
    assert all(source and reason for source, reason in sources)
    await assert_levels_agree(shop_platform, shop.agent, present)


async def assert_levels_agree(shop_platform: Platform, shop: Shop, present: Sequence[int]) -> None:
    """Each level is what the pools have for it, and none was set more than twice in any second."""
    levels = {
        int(id): [*places.values()] for id, places in (await shop_platform.ask("levels", shop=shop.domain)).items()
    }
    expected = {
        id: [max(0, min(pool // units[id] for pool, units in zip(present, UNITS, strict=True) if id in units))]
        * len(at_places)
        for id, at_places in levels.items()
    }
    assert levels == expected
    moments: dict[tuple[int, int], list[float]] = {}
    for set_call in await shop_platform.ask("sets", shop=shop.domain):
        for item, place, name, _, _ in set_call["changes"]:
            if name == "available":
                moments.setdefault((item, place), []).append(set_call["created"])
    assert moments
    for times in moments.values():
        assert all(third - first > 1 for first, third in zip(times, times[2:], strict=False))


def units_of(order: Mapping[str, Any], units: Mapping[int, int]) -> int:
    """What an order has taken of a pool: what was ordered and is not back in stock."""
    back: Counter[int] = Counter()
    for refund in order["refunds"]:
        for line in refund["lines"]:
            if line["restock"] != "NO_RESTOCK":
                back[line["line"]] += line["quantity"]
    return sum((line["quantity"] - back[line["id"]]) * units.get(line["variant"], 0) for line in order["lines"])
