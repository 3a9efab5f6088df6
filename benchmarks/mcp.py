"""The agent endpoint: a tool that reads the database, beside the official SDK's tool that does nothing, in both eras.

python -m benchmarks.mcp [--help]
"""

import os
import subprocess
import sys
from collections.abc import Iterator
from typing import Annotated

import typer
from rich.table import Table

from benchmarks import load
from benchmarks.stage import Best, holdfast, row, say, server
from benchmarks.stock import SHOP, added_shop, call, make_pools
from holdfast.kit.postgres import bundled

ERAS = {"2025-11-25": "handshake, 2025-11-25", "2026-07-28": "stateless, 2026-07-28"}


def main(
    requests: Annotated[int, typer.Option(help="Calls in each run.")] = 40_000,
    rounds: Annotated[int, typer.Option(help="Runs of each; the best is reported.")] = 3,
) -> None:
    """Measure tools/call."""
    environment = {
        **os.environ,
        "INVENTORY_SECRET_KEY": "a secret that only benchmarks use",
        "INVENTORY_DATABASE_URL": bundled.database_url(bundled.scratch_directory(), "inventory"),
        "MCP_RATE_LIMIT": "1000000000",
    }
    subprocess.run([holdfast(), "inventory", "migrate"], env=environment, check=True, capture_output=True)
    key = added_shop(environment, SHOP)
    table = Table(title=f"tools/call: {requests:,} a run, best of {rounds}, 64 connections")
    for heading in ("what", "ours, get_pool", "SDK, no-op", "ours/SDK", "goal"):
        table.add_column(heading, justify="left" if heading == "what" else "right")

    with (
        server([holdfast(), "inventory", "serve", "--port", "0", "--no-background"], environment) as ours,
        server([sys.executable, "-m", "benchmarks.sdk"], environment) as sdk,
    ):
        pools = make_pools(ours, key, 1_000)
        for era, name in ERAS.items():

            def calls(count: int, era: str = era) -> Iterator[bytes]:
                return (
                    call(key, "get_pool", {"pool_id": pools[number % len(pools)]}, era=era) for number in range(count)
                )

            best, peer = Best(), Best()
            for _ in range(rounds):
                peer.take(load.run(sdk, iter([*calls(requests // 8)])), 200)
                best.take(load.run(ours, iter([*calls(requests)])), 200)
            row(table, name, best, peer, "≥ twice the SDK")
    say(table)


if __name__ == "__main__":
    typer.run(main)
