"""The inventory service for a crowd: what is asked of it, and what must answer meanwhile."""

import contextlib
import datetime as dt
import itertools
import os
import random
import subprocess
import time
from collections.abc import Generator, Iterator

import httpx2
import msgspec
import psutil
import psycopg
from psycopg.conninfo import make_conninfo

from benchmarks import load
from benchmarks.crowd import CrowdedService, Kind
from benchmarks.overload_events import repeated, signs_of_life
from benchmarks.platform import CLIENT_SECRET
from benchmarks.probes import Probe
from benchmarks.stage import holdfast, server
from benchmarks.stock import SHOP, added_shop, call, make_pools, signed_path, stock_shelves
from benchmarks.streams import is_listening
from holdfast.accounts.sessions import digest
from holdfast.inventory.shopify import signatures
from holdfast.kit.postgres import bundled
from holdfast.kit.postgres.bundled_server import SUPERUSER
from holdfast.kit.security.cookie_secrets import new_cookie_secret
from holdfast_demo.shopify import CLIENT_ID

POOLS = 1_000

VARIANTS = 500
"""Variants in the answer about availability."""

ORDERED_VARIANT = 40_000_000_000
"""A variant that draws on a pool, and is in every order."""

SIGNATURE_SECONDS = 30
"""How long the same signature of a storefront is used; the service accepts it for 90 seconds."""


@contextlib.contextmanager
def inventory(directory: str) -> Generator[CrowdedService]:
    """Start the service with an empty database, and fill it."""
    url = bundled.database_url(bundled.scratch_directory(), "inventory")
    environment = {
        **os.environ,
        "HOLDFAST_DATA_DIR": directory,
        "INVENTORY_DATABASE_URL": url,
        "INVENTORY_SECRET_KEY": "a secret that only benchmarks use",
        "INVENTORY_CLIENT_ID": CLIENT_ID,
        "INVENTORY_CLIENT_SECRET": CLIENT_SECRET,
        # No level has to be set at the platform: its items are not known.
        "PLATFORM_ADDRESS": "http://127.0.0.1:9/{shop}",
        "MCP_RATE_LIMIT": "1000000000",
    }
    subprocess.run([holdfast(), "inventory", "migrate"], env=environment, check=True, capture_output=True)
    key, session = added_shop(environment, SHOP), new_cookie_secret()
    with psycopg.connect(make_conninfo(url, user=SUPERUSER), autocommit=True) as connection:
        connection.execute("insert into installs (shop_id, scopes) select id, '{}' from shops")
        connection.execute(
            "insert into merchants (shop_id, email, proved_at) select id, 'merchant@example.com', now() from shops"
        )
        connection.execute(
            "insert into sessions (hash, account_id, way, browser) select %s, id, 'link', 'a benchmark' from merchants",
            [digest(session)],
        )
    with server([holdfast(), "inventory", "serve", "--port", "0"], environment) as port:
        process = next(process for process in psutil.process_iter() if is_listening(process, port))
        pools = make_pools(port, key, POOLS)
        stock_shelves(port, key, VARIANTS)
        cookie = f"session-{port}={session}"
        probes = [
            *signs_of_life(),
            Probe("console", repeated(load.request("GET", f"/console/pools/{pools[-1]}", Cookie=cookie)), 200),
            Probe("order webhook", _orders(), 200),
        ]
        yield CrowdedService(
            "inventory",
            port,
            process,
            _kinds(key, pools),
            probes,
            lambda: load.request("GET", _stream_path(port, environment)),
        )


def _kinds(key: str, pools: list[int]) -> list[Kind]:
    chance = random.Random(7)

    def change(pools: list[int]) -> Iterator[bytes]:
        while True:
            arguments = {"pool_id": chance.choice(pools), "delta": chance.choice([-1, 1, 2])}
            yield call(key, "adjust_pool_quantity", arguments)

    def read(era: str) -> Iterator[bytes]:
        return itertools.cycle([call(key, "get_pool", {"pool_id": pool}, era) for pool in pools])

    gid = f"gid://shopify/ProductVariant/{ORDERED_VARIANT}"
    return [
        Kind("stock changes of one pool", change(pools[:1]), 200),
        Kind(f"stock changes of {POOLS:,} pools", change(pools), 200),
        Kind("availability in a storefront", _availability(), 200),
        Kind("availability of a variant", repeated(call(key, "get_availability", {"variant_gids": [gid]})), 200),
        *(Kind(f"inventory's /mcp, {era}", read(era), 200) for era in ("2025-11-25", "2026-07-28")),
        Kind("webhooks of orders", _orders(), 200, replaces_probe="order webhook"),
    ]


def _availability() -> Iterator[bytes]:
    """What a storefront asks, signed as the platform signs it."""
    while True:
        signed_at = time.time()
        query = signatures.sign_proxy_query(SHOP, CLIENT_SECRET.encode(), signed_at)
        request = load.request("GET", f"/storefront/availability?{query}", Accept_Encoding="gzip")
        while time.time() < signed_at + SIGNATURE_SECONDS:
            yield request


_NUMBERS = itertools.count(time.time_ns() // 1_000_000)


def _orders() -> Iterator[bytes]:
    """Webhooks of new orders of one unit."""
    for number in _NUMBERS:
        now = dt.datetime.now(dt.UTC).isoformat()
        line = {"id": number, "quantity": 1, "current_quantity": 1, "variant_id": ORDERED_VARIANT}
        body = msgspec.json.encode({"id": number, "created_at": now, "updated_at": now, "line_items": [line]})
        yield load.request(
            "POST",
            "/webhooks/shopify",
            body=body,
            X_Shopify_Topic="orders/create",
            X_Shopify_Shop_Domain=SHOP,
            X_Shopify_Webhook_Id=str(number),
            X_Shopify_Hmac_Sha256=signatures.sign_webhook(body, CLIENT_SECRET.encode()).decode(),
        )


def _stream_path(port: int, environment: dict[str, str]) -> str:
    """The path of the stream of a storefront."""
    stream = httpx2.get(f"http://127.0.0.1:{port}{signed_path(environment)}").json()["stream_url"]
    return "/" + stream.split("/", 3)[3]
