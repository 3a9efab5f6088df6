"""The storefront platform's double in a process of its own, and what customers and merchants do in its shops."""

import contextlib
import random
import subprocess
from collections import Counter
from collections.abc import AsyncGenerator, Generator, Sequence
from pathlib import Path
from typing import Any

import httpx2

from holdfast.kit.security.http_client import HttpClient
from tests.faults.processes import HOLDFAST
from tests.serving import PLAIN

CLIENT, SECRET = "client-tests", "shpss_tests"
HONEY = {"Single": 1001, "6-pack": 1006, "12-pack": 1012}
TEA = {"100 g": 2001, "250 g": 2002}
KIT = {"Breakfast": 3001}
VARIANTS = [*HONEY.values(), *TEA.values(), *KIT.values()]
"""The ids of variants. Each shop has the same, as the shops of the real platform never do."""

RECENT = 6
"""So many orders may still be changed: many changes of one order come close together."""


class Impossible(Exception):
    """The platform did not let a customer or a merchant do this; the message says why."""


class Platform:
    """The double, which is never killed. `address`: where it is."""

    def __init__(self, address: str, http: httpx2.AsyncClient) -> None:
        self.address = address
        self._http = http

    async def ask(self, deed: str, /, **arguments: Any) -> Any:
        """Let something happen there. Raises `Impossible`."""
        answer = await self._http.post(f"/_test/{deed}", json=arguments)
        if answer.status_code == 409:
            raise Impossible(answer.json()["error"])
        assert answer.status_code == 200, answer.text
        return answer.json()


@contextlib.asynccontextmanager
async def platform(directory: Path, app_address: str) -> AsyncGenerator[Platform]:
    """A platform that keeps its state in a file, for as long as the block lasts."""
    with _served(directory, app_address) as address:
        async with HttpClient(base_url=address, verify=PLAIN, trust_env=False, timeout=60) as http:
            yield Platform(address, http)


@contextlib.contextmanager
def _served(directory: Path, app_address: str) -> Generator[str]:
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

    changed    by variant, how many units somebody has added to its level by hand, all in all
    """

    def __init__(self, platform: Platform, domain: str, seed: int) -> None:
        self.domain = domain
        self.changed: Counter[int] = Counter()
        self.done: Counter[str] = Counter()
        self._platform = platform
        self._random = random.Random(seed)
        self._recent: list[dict[str, Any]] = []
        self._places: list[int] = []

    async def open(self, locations: int) -> None:
        """Open the shop with so many locations, and put everything into it that is sold."""
        await self._ask("open", points=2_000)
        for number in range(1, locations):
            await self._ask("add-location", name=f"Shop {number}")
        self._places = [location["id"] for location in await self._ask("locations")]
        stock = {str(place): 0 for place in self._places}
        for title, variants in (("Honey jars", HONEY), ("Green tea", TEA), ("Kit", KIT)):
            new = [[name, f"SKU-{id}", "6.00", "DENY", True, False, stock, id] for name, id in variants.items()]
            await self._ask("add-product", title=title, variants=new)

    async def go_on(self, count: int) -> None:
        """Let so many things happen."""
        while count:
            deeds = {self._sell: 9, self._edit: 4, self._refund: 3, self._cancel: 2, self._send: 3, self._recount: 1}
            [deed] = self._random.choices([*deeds], [*deeds.values()])
            try:
                await deed()
            except Impossible:
                self.done["impossible"] += 1
            else:
                self.done[deed.__name__.strip("_")] += 1
                count -= 1

    async def _ask(self, deed: str, /, **arguments: Any) -> Any:
        return await self._platform.ask(deed, shop=self.domain, **arguments)

    def _random_lines(self, most: int = 3) -> list[list[int]]:
        """Lines of a new order."""
        chosen = self._random.choices(VARIANTS, k=self._random.randint(1, most))
        return [[variant, self._random.randint(1, 3)] for variant in chosen]

    def _order(self) -> dict[str, Any]:
        if not self._recent:
            raise Impossible("There is no order yet.")
        return self._random.choice(self._recent)

    def _line(self, order: dict[str, Any]) -> dict[str, Any]:
        return self._random.choice(order["lines"])

    def _is_so(self) -> bool:
        return self._random.random() < 0.5

    def _keep(self, order: dict[str, Any]) -> None:
        """Remember what an order is like now."""
        others: Sequence[dict[str, Any]] = [recent for recent in self._recent if recent["id"] != order["id"]]
        self._recent = [*others, order][-RECENT:]

    async def _sell(self) -> None:
        till = self._random.choice(self._places) if self._random.random() < 0.2 else None
        anyway = self._random.random() < 0.3
        self._keep(await self._ask("sell", lines=self._random_lines(), even_if_sold_out=anyway, till=till))

    async def _edit(self) -> None:
        order = self._order()
        line = self._line(order)
        quantity = self._random.randint(line["fulfilled"], line["current"] + 2)
        added = self._random_lines(1) if self._random.random() < 0.4 else []
        change = [line["id"], quantity, self._is_so()]
        self._keep(await self._ask("edit", order=order["id"], lines=[change], added=added))

    async def _refund(self) -> None:
        order = self._order()
        line = self._line(order)
        quantity = self._random.randint(1, max(1, line["current"]))
        await self._ask("refund", order=order["id"], lines=[[line["id"], quantity, self._is_so()]])
        line["current"] -= quantity
        line["fulfilled"] = min(line["fulfilled"], line["current"])

    async def _cancel(self) -> None:
        self._keep(await self._ask("cancel", order=self._order()["id"], restock=self._is_so()))

    async def _send(self) -> None:
        self._keep(await self._ask("send", order=self._order()["id"]))

    async def _recount(self) -> None:
        """Count a variant by hand, and find another number than the platform has."""
        variant = self._random.choice(VARIANTS)
        place = self._random.choice(self._places)
        seen = (await self._ask("levels"))[str(variant)][str(place)]
        counted = max(0, seen + self._random.choice([-2, -1, 1, 2, 3]))
        _, _, _, available, _, before, *_ = await self._ask("count", variant=variant, location=place, available=counted)
        self.changed[variant] += available - before
