"""Levels at the storefront platform: from the webhook of an order to the levels that it changes; and the import.

python -m benchmarks.sync [--help]
"""

import os
import subprocess
import time
from bisect import bisect_left
from collections.abc import Sequence
from statistics import median
from threading import Event, Thread
from typing import Annotated, Any

import psycopg
import typer
from rich.table import Table

from benchmarks import shops
from benchmarks.platform import Record, Sale
from benchmarks.shops import Open, Platform, Service
from benchmarks.stage import holdfast, say
from holdfast.kit.postgres import bundled

LONGEST_SECONDS = 900
"""How long an import may take."""

POINTS, MANY_POINTS = 100.0, 1_000.0
"""What a shop of the smallest plan may spend a second, and a shop of the plan for the largest shops."""

ORDERED = (
    ("webhook received → level accepted, p50", "ms", ""),
    ("webhook received → level accepted, p99", "ms", "< 1,000 ms"),
    ("webhook answered, p50", "ms", ""),
    ("webhook answered, p99", "ms", ""),
    ("webhooks a second", "", ""),
    ("calls to the platform a second", "", ""),
    ("levels a call", "", ""),
    ("processor time of the service an order", "ms", ""),
)


def main(
    per_second: Annotated[float, typer.Option(help="Orders a second.")] = 100,
    seconds: Annotated[float, typer.Option(help="How long orders come.")] = 30,
    many: Annotated[int, typer.Option(help="Shops, when it is more than one.")] = 10,
    pools: Annotated[int, typer.Option(help="Pools of each shop, with four variants each.")] = 10,
    variants: Annotated[int, typer.Option(help="Variants that are imported; 0: none.")] = 50_000,
    rounds: Annotated[int, typer.Option(help="Runs of orders; the medians are reported. 0: none.")] = 3,
) -> None:
    """Measure how fast levels follow orders, and how fast a shop is imported."""
    directory = bundled.scratch_directory()
    ports = shops.free_ports()
    environment = {
        **os.environ,
        **shops.settings(ports),
        "INVENTORY_DATABASE_URL": bundled.database_url(directory, "inventory"),
        "HOLDFAST_DATA_DIR": str(directory),
    }
    subprocess.run([holdfast(), "inventory", "migrate"], env=environment, check=True, capture_output=True)
    with shops.platform(ports, environment) as platform:
        if rounds:
            say(followed(platform, ports, environment, (1, many), pools, per_second, seconds, rounds))
        if variants:
            with shops.service(ports, environment) as service:
                say(imported(platform, service, variants))


def followed(
    platform: Platform,
    ports: shops.Ports,
    environment: dict[str, str],
    counts: Sequence[int],
    pools: int,
    per_second: float,
    seconds: float,
    rounds: int,
) -> Table:
    """Sell in one shop, and then in several."""
    columns: list[list[float]] = []
    for count in counts:
        points = MANY_POINTS if count == 1 else POINTS
        with shops.service(ports, environment) as service:
            named = [f"of-{count}-{number}.myshopify.com" for number in range(count)]
            opened = [shops.opened(platform, service, domain, pools, points) for domain in named]
            runs = [ordered(platform, service, opened, per_second, seconds) for _ in range(rounds)]
        columns.append([median(figures) for figures in zip(*runs, strict=True)])
    table = Table(title=f"Levels: {per_second:g} orders a second for {seconds:g} s, median of {rounds}")
    table.add_column("what")
    for heading in (*(f"shops: {count}" for count in counts), "goal"):
        table.add_column(heading, justify="right")
    for index, (what, unit, goal) in enumerate(ORDERED):
        table.add_row(what, *(f"{column[index]:,.1f} {unit}" for column in columns), goal)
    return table


def ordered(
    platform: Platform, service: Service, opened: Sequence[Open], per_second: float, seconds: float
) -> list[float]:
    """Sell, wait until everything agrees, and return the figures of `ORDERED`."""
    variants = {shop.domain: [variant for pool in shop.pools for variant in pool.sold] for shop in opened}
    watched = [pool.watched for shop in opened for pool in shop.pools]
    before, cpu = figures(service), service.cpu()
    sold = platform.sell(Sale(per_second, seconds, variants, watched))
    shops.until(lambda: platform.ask("waiting") == 0)
    shops.until(lambda: all(shops.is_settled(service, shop) for shop in opened))
    # What is sold may be handled and not yet reckoned: only when all books agree, nothing comes any more.
    shops.until(lambda: not disagreement(platform, service, opened), lambda: disagreement(platform, service, opened))
    shops.until(lambda: platform.ask("waiting") == 0)  # what the platform tells of the last levels is in its record
    cpu, after = service.cpu() - cpu, figures(service)
    record = platform.record()
    calls, pushes, levels = (late - early for early, late in zip(before, after, strict=True))
    lags = accepted_after(service, opened, record, {order for order, _ in sold.orders})
    answered = sorted(webhook.answered - webhook.sent for webhook in record.webhooks)
    if any(webhook.status != 200 for webhook in record.webhooks):
        raise SystemExit("Not every webhook was answered with 200.")
    measured = [
        1000 * at(lags, 0.5),
        1000 * at(lags, 0.99),
        1000 * at(answered, 0.5),
        1000 * at(answered, 0.99),
        len(record.webhooks) / sold.seconds,
        calls / sold.seconds,
        levels / pushes,
        1000 * cpu / len(sold.orders),
    ]
    pace = len(sold.orders) / sold.seconds
    say(f"  {pace:,.0f} orders/s, accepted after p50 {measured[0]:,.0f} ms, p99 {measured[1]:,.0f} ms", style="dim")
    return measured


def figures(service: Service) -> tuple[float, float, float]:
    """Calls of the platform so far, those that change levels, and how many levels they have changed."""
    names = ("holdfast_platform_calls_total", "holdfast_level_pushes_total", "holdfast_levels_pushed_total")
    calls, pushes, levels = map(service.figure, names)
    return calls, pushes, levels


def at(values: Sequence[float], share: float) -> float:
    return values[min(len(values) - 1, int(len(values) * share))]


def accepted_after(service: Service, opened: Sequence[Open], record: Record, orders: set[int]) -> list[float]:
    """Seconds from the webhook of each order to the level that counts it, sorted. By the clock of the platform alone.

    The level of the item that is never sold is what the pool has. So the first one that is not above what the order has
    left in the pool, by the ledger, counts the order.
    """
    sent = {webhook.order: webhook.sent for webhook in record.webhooks if webhook.order}
    items = {pool.id: pool.watched for shop in opened for pool in shop.pools}
    levels: dict[int, list[tuple[float, int]]] = {item: [] for item in items.values()}
    for level in record.accepted:
        levels[level.item].append((level.at, -level.available))
    delays: list[float] = []
    for source, pool_id, left in rows(
        service, "select source_ref, pool_id, balance_after from ledger where kind = 'sale'"
    ):
        order = int(source.rpartition("/")[2])
        if order in orders:
            history = levels[items[pool_id]]
            first = bisect_left(history, -left, key=lambda entry: entry[1])
            delays.append(history[first][0] - sent[order])
    if len(delays) != len(orders):
        raise SystemExit(f"Of {len(orders)} orders, {len(delays)} are in the ledger.")
    return sorted(delays)


def disagreement(platform: Platform, service: Service, opened: Sequence[Open]) -> str:
    """Where what was sold, the ledger, the pools and the levels do not agree; empty if they do everywhere."""
    ledger = dict(rows(service, "select pool_id, sum(delta)::bigint from ledger group by pool_id"))
    counts = dict(rows(service, "select id, on_hand from pools"))
    for shop in opened:
        sold: dict[int, int] = {}
        for order in platform.ask("orders", shop=shop.domain):
            for line in order["lines"]:
                sold[line["variant"]] = sold.get(line["variant"], 0) + line["current"]
        levels = platform.ask("levels", shop=shop.domain)
        for pool in shop.pools:
            left = shops.STOCK - sum(sold.get(variant, 0) * units for variant, units in pool.sold.items())
            levels_written = {variant: sum(levels[str(variant)].values()) for variant in pool.all}
            expected = {variant: left // units for variant, units in pool.all.items()}
            if not left == ledger[pool.id] == counts[pool.id] or levels_written != expected:
                return (
                    f"{shop.domain}, pool {pool.id}: {left} should be left, the ledger has {ledger[pool.id]}, the pool "
                    f"{counts[pool.id]}; the levels are {levels_written} and should be {expected}."
                )
    return ""


def rows(service: Service, sql: Any) -> list[Any]:
    with psycopg.connect(service.database_url) as connection:
        return connection.execute(sql).fetchall()


def imported(platform: Platform, service: Service, variants: int) -> Table:
    """Import a shop with this many variants, and search it meanwhile."""
    domain = "large.myshopify.com"
    platform.ask("open", shop=domain, points=POINTS)
    for start in range(0, variants, 100):
        new = [
            [f"Size {number}", f"SKU-{start + number}", "10.00", "DENY", True, False, 5]
            for number in range(min(100, variants - start))
        ]
        platform.ask("add-product", shop=domain, title=f"Product {start // 100}", variants=new)
    rest = service.process.memory_info().rss
    cpu = service.cpu()
    with Highest(service) as highest:
        key = shops.installed(platform, service, domain)
        searches: list[float] = []
        started = time.perf_counter()
        while (status := service.call(key, "get_sync_status")["imported"])["status"] != "done":
            if time.perf_counter() - started > LONGEST_SECONDS:
                raise SystemExit(f"The import takes too long. {status['error'] or ''}")
            began = time.perf_counter()
            service.call(key, "search_variants", query=f"SKU-{variants // 2}")
            searches.append(time.perf_counter() - began)
            time.sleep(0.1)
    searches.sort()
    ready = platform.shops()[domain]["ready"]
    [(total_seconds, stored)] = rows(
        service,
        f"""
        select extract(epoch from finished_at - requested_at)::float8,
               extract(epoch from finished_at)::float8 - {float(ready)}
          from catalogs join shops on shops.id = shop_id where domain = '{domain}'
        """,
    )
    [(count,)] = rows(
        service,
        "select count(*) from catalog_variants join shops on shops.id = shop_id where domain = 'large.myshopify.com'",
    )
    if count != variants:
        raise SystemExit(f"{count} variants were imported, and {variants} are there.")
    table = Table(title=f"Import of {variants:,} variants with a level each")
    table.add_column("what")
    table.add_column("measured", justify="right")
    for what, measured in (
        ("from the install to the end", f"{total_seconds:,.1f} s"),
        ("of this, until the platform had its file", f"{total_seconds - stored:,.1f} s"),
        ("of this, to look, fetch and store it", f"{stored:,.1f} s"),
        ("lines stored a second", f"{status['stored'] / stored:,.0f}"),
        ("processor time of the service", f"{service.cpu() - cpu:,.1f} s"),
        ("memory at its height, above that at rest", f"{(highest.bytes - rest) / 1e6:,.1f} MB"),
        ("search_variants meanwhile, p50", f"{1000 * at(searches, 0.5):,.0f} ms"),
        ("search_variants meanwhile, p99", f"{1000 * at(searches, 0.99):,.0f} ms"),
    ):
        table.add_row(what, measured)
    return table


class Highest:
    """The most memory that a process had, looked at twenty times a second."""

    def __init__(self, service: Service) -> None:
        self._process = service.process
        self._over = Event()
        self._looking = Thread(target=self._look, daemon=True)
        self.bytes = 0

    def __enter__(self) -> "Highest":
        self._looking.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._looking.join()

    def _look(self) -> None:
        while not self._over.wait(0.05):
            self.bytes = max(self.bytes, self._process.memory_info().rss)


if __name__ == "__main__":
    typer.run(main)
