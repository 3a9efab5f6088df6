"""Demo shops as a process of their own, with the API that tests of other processes use."""

import subprocess
from collections.abc import Generator
from pathlib import Path
from typing import Any

import httpx2
import pytest

from holdfast_demo.shopify import CLIENT_ID
from tests.helpers.processes import HOLDFAST

SHOP = "a.myshopify.com"
CLIENT_SECRET = "shpss_of_the_tests"


def start(*words: str) -> subprocess.Popen[str]:
    program = [HOLDFAST, "inventory", "platform-double", "--port", "0", "--shop", SHOP, *words]
    return subprocess.Popen(program, stdout=subprocess.PIPE, text=True)


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Generator[str]:
    file: Path = tmp_path_factory.mktemp("double") / "shops.sqlite"
    with start("--for-tests", "--file", str(file), "--client-secret", CLIENT_SECRET) as process:
        assert process.stdout is not None
        yield process.stdout.readline().split()[-1]
        process.terminate()


def test_the_demo_platform_is_controlled_from_another_process(address: str) -> None:
    with httpx2.Client(base_url=f"{address}/_test", trust_env=False) as tests:

        def ask(path: str, /, **arguments: Any) -> Any:
            answer = tests.post(f"/{path}", json=arguments)
            assert answer.status_code == 200, answer.text
            return answer.json()

        ask("install", shop=SHOP)
        variant = ask("variants", shop=SHOP)[1]["id"]
        place = ask("locations", shop=SHOP)[0]["id"]
        order = ask("sell", shop=SHOP, lines=[[variant, 3]])
        line = order["lines"][0]["id"]
        ask("edit", shop=SHOP, order=order["id"], lines=[[line, 2]])
        ask("send", shop=SHOP, order=order["id"])
        ask("refund", shop=SHOP, order=order["id"], lines=[[line, 1]])
        assert ask("levels", shop=SHOP)[str(variant)] == {str(place): 7}
        ask("count", shop=SHOP, variant=variant, available=20)
        other = ask("sell", shop=SHOP, lines=[[variant, 30, None]], even_if_sold_out=True)
        ask("cancel", shop=SHOP, order=other["id"], restock=False)
        assert ask("levels", shop=SHOP)[str(variant)] == {str(place): -10}
        assert [order["id"] for order in ask("orders", shop=SHOP)] == [order["id"], other["id"]]
        ask("open", shop="b.myshopify.com", points=1000)
        cellar = ask("add-location", shop="b.myshopify.com", name="Cellar")["id"]
        assert [location["id"] for location in ask("locations", shop="b.myshopify.com")][1:] == [cellar]
        assert ask("sets", shop=SHOP) == []
        ask("add-product", shop="b.myshopify.com", title="Socks", variants=[["S", "SOCKS-S"]])
        ask("webhook_delays", seed=1, lost=10)
        ask("webhooks", haste=1000.0, hold=True)
        ask("advance", seconds=5)
        ask("comply", shop=SHOP, topic="shop/redact")
        assert ask("session-token", shop=SHOP).count(".") == 2
        ask("plan", kind="before", shop=SHOP)
        ask("heal")
        ask("uninstall", shop=SHOP)
        assert ask("waiting") in {0, 1}
        refusal = tests.post("/sell", json={"shop": SHOP, "lines": []})
        assert (refusal.status_code, "at least one line" in refusal.text) == (409, True)
        assert tests.post("/sell", json={"shp": SHOP}).status_code == 400


def test_the_admin_api_answers_over_the_network(address: str) -> None:
    credentials = {"client_id": CLIENT_ID, "client_secret": CLIENT_SECRET, "grant_type": "client_credentials"}
    with httpx2.Client(base_url=address, trust_env=False) as client:
        client.post("/_test/begin", json={"shop": "c.myshopify.com"})
        client.post("/_test/install", json={"shop": "c.myshopify.com"})
        token = client.post("/c.myshopify.com/admin/oauth/access_token", json=credentials).json()["access_token"]
        answer = client.post(
            "/c.myshopify.com/admin/api/2026-10/graphql.json",
            json={"query": "{ shop { name } }"},
            headers={"X-Shopify-Access-Token": token},
        )

    assert answer.json()["data"] == {"shop": {"name": "C"}}


def test_the_api_for_tests_is_off_by_default() -> None:
    with start() as process:
        assert process.stdout is not None
        address = process.stdout.readline().split()[-1]
        answer = httpx2.post(f"{address}/_test/orders", json={"shop": SHOP}, trust_env=False)
        process.terminate()

    assert answer.status_code == 404
