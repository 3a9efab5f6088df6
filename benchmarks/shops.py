"""What a benchmark of the storefront platform needs: the double, the service beside it, shops that have the app."""

import contextlib
import socket
import sys
import time
from collections.abc import Callable, Generator, Mapping
from typing import Any, NamedTuple

import httpx2
import msgspec
import psutil

from benchmarks.platform import CLIENT_SECRET, Record, Sale, Sold
from benchmarks.stage import holdfast, server
from benchmarks.stock import tool_answer
from benchmarks.streams import is_listening
from holdfast.inventory.installs.subscriptions import APP_WIDE_TOPICS
from holdfast.inventory.service import HANDLERS
from holdfast_demo.shopify import CLIENT_ID

STOCK = 1_000_000
PACKS = {"Watched": 1, "Single": 1, "6-pack": 6, "12-pack": 12}
"""The variants of each pool, with their units of a sale. The first is never sold."""


class Ports(NamedTuple):
    service: int
    platform: int


class Pool(NamedTuple):
    """A pool at the service, and its variants at the platform.

    watched    the inventory item that is never sold: its level is what the pool has
    sold       units of a sale, by variant
    all        units of a sale, by variant, of all its variants
    """

    id: int
    watched: int
    sold: Mapping[int, int]
    all: Mapping[int, int]


class Open(NamedTuple):
    """A shop that has the app."""

    domain: str
    key: str
    pools: list[Pool]


class Platform:
    """The double, in a process of its own."""

    def __init__(self, port: int) -> None:
        self._http = httpx2.Client(base_url=f"http://127.0.0.1:{port}", timeout=600)

    def ask(self, name: str, **arguments: Any) -> Any:
        """Have something done that only tests can ask for."""
        answer = self._http.post(f"/_test/{name}", json=arguments)
        assert answer.status_code == 200, answer.text
        return answer.json()

    def sell(self, sale: Sale) -> Sold:
        answer = self._http.post("/_bench/sell", content=msgspec.json.encode(sale))
        assert answer.status_code == 200, answer.text
        return msgspec.json.decode(answer.content, type=Sold)

    def shops(self) -> Any:
        """How many subscriptions each shop has, and when its import was ready."""
        return self._http.get("/_bench/shops").json()

    def record(self) -> Record:
        """What was told and accepted since the last sale began."""
        return msgspec.json.decode(self._http.get("/_bench/record").content, type=Record)


class Service:
    """The inventory service, in a process of its own."""

    def __init__(self, port: int, database_url: str) -> None:
        self.port = port
        self.database_url = database_url
        self.process = next(process for process in psutil.process_iter(["cmdline"]) if is_listening(process, port))

    def call(self, key: str, tool: str, **arguments: Any) -> Any:
        return tool_answer(self.port, key, tool, arguments)

    def session(self, token: str) -> Any:
        headers = {"Authorization": f"Bearer {token}"}
        answer = httpx2.post(f"http://127.0.0.1:{self.port}/auth/session", headers=headers, timeout=60)
        assert answer.status_code == 200, answer.text
        return answer.json()

    def cpu(self) -> float:
        """Seconds of the processor that it has used."""
        used = self.process.cpu_times()
        return used.user + used.system

    def figure(self, name: str) -> float:
        """The sum of a metric over its labels."""
        lines = httpx2.get(f"http://127.0.0.1:{self.port}/metrics", timeout=60).text.splitlines()
        return sum(float(line.rpartition(" ")[2]) for line in lines if line.startswith(name))


def free_ports() -> Ports:
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in Ports._fields]
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return Ports(*(socket.getsockname()[1] for socket in sockets))


def settings(ports: Ports) -> dict[str, str]:
    """The settings of the service beside the double."""
    return {
        "INVENTORY_SECRET_KEY": "a secret that only benchmarks use",
        "INVENTORY_BASE_URL": f"http://127.0.0.1:{ports.service}",
        "INVENTORY_CLIENT_ID": CLIENT_ID,
        "INVENTORY_CLIENT_SECRET": CLIENT_SECRET,
        "PLATFORM_ADDRESS": f"http://127.0.0.1:{ports.platform}/{{shop}}",
        "MCP_RATE_LIMIT": "1000000000",
        "INSTALL_RATE_LIMIT": "1000",
    }


@contextlib.contextmanager
def platform(ports: Ports, environment: dict[str, str]) -> Generator[Platform]:
    app = f"http://127.0.0.1:{ports.service}"
    with server([sys.executable, "-m", "benchmarks.platform", str(ports.platform), app], environment) as port:
        yield Platform(port)


@contextlib.contextmanager
def service(ports: Ports, environment: dict[str, str]) -> Generator[Service]:
    with server([holdfast(), "inventory", "serve", "--port", str(ports.service)], environment) as port:
        yield Service(port, environment["INVENTORY_DATABASE_URL"])


def installed(platform: Platform, service: Service, domain: str) -> str:
    """The key of a shop that has just installed the app."""
    platform.ask("install", shop=domain)
    return service.session(platform.ask("session-token", shop=domain))["api_key"]


def opened(platform: Platform, service: Service, domain: str, pools: int, points: float) -> Open:
    """A new shop with the app and with pools, whose levels are what the pools have."""
    platform.ask("open", shop=domain, points=points)
    variants = [
        [title, f"{title}-{number}", "10.00", "DENY", True, False, STOCK // units]
        for number in range(pools)
        for title, units in PACKS.items()
    ]
    made = platform.ask("add-product", shop=domain, title="Honey", variants=variants)
    key = installed(platform, service, domain)
    shop = Open(domain, key, [])
    for start in range(0, len(made), len(PACKS)):
        of_pool = dict(zip(PACKS.items(), made[start : start + len(PACKS)], strict=True))
        members = [
            {"variant_gid": f"gid://shopify/ProductVariant/{variant['id']}", "units_per_sale": units}
            for (_, units), variant in of_pool.items()
        ]
        pool = service.call(key, "create_pool", name=f"Honey {start}", quantity=STOCK, members=members)["pool"]
        watched, *sold = of_pool.items()
        shop.pools.append(
            Pool(
                pool["id"],
                watched[1]["item"],
                {variant["id"]: units for (_, units), variant in sold},
                {variant["id"]: units for (_, units), variant in of_pool.items()},
            )
        )
    until(lambda: is_settled(service, shop))
    until(lambda: is_subscribed(platform, domain))
    return shop


def is_settled(service: Service, shop: Open) -> bool:
    """Whether a shop is imported, and all its levels are as its pools want them."""
    status = service.call(shop.key, "get_sync_status")
    if status["parked"] or (status["error"] and not status["connected"]):
        raise SystemExit(f"{shop.domain}: {status}")
    settled = not status["pending"] and not status["unexplained"]
    return status["imported"]["status"] == "done" and settled and status["levels"] == len(shop.pools) * len(PACKS)


def until(is_so: Callable[[], bool], why: Callable[[], str] = str, seconds: float = 300) -> None:
    """Wait until something is so. `why`: what is to be said of it if that takes too long."""
    started = time.perf_counter()
    while not is_so():
        if time.perf_counter() - started > seconds:
            raise SystemExit(f"It takes too long. {why()}")
        time.sleep(0.1)


def is_subscribed(platform: Platform, domain: str) -> bool:
    """Whether the service has subscribed to all that it wants to be told of."""
    return platform.shops()[domain]["subscriptions"] == len(HANDLERS.keys() - APP_WIDE_TOPICS)
