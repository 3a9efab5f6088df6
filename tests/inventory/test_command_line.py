"""The command line of the inventory service, as operators' scripts use it."""

import re
from collections.abc import Mapping
from pathlib import Path

import httpx2
import psycopg
import pytest
from psycopg.conninfo import make_conninfo

from tests.helpers.command_line import run_holdfast
from tests.helpers.inventory_service import SINGLE
from tests.helpers.processes import Process, running_processes
from tests.inventory.operators import DOMAIN, ShopOperator

KEY = re.compile(r"hf_[\w-]{43}")
LIST_TOOLS = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}


@pytest.fixture
def operator(inventory_url: str, tmp_path: Path) -> ShopOperator:
    return ShopOperator(inventory_url, tmp_path)


def ask(process: Process, key: str, message: Mapping[str, object] = LIST_TOOLS) -> httpx2.Response:
    return httpx2.post(f"{process.url}/mcp", json=message, headers={"authorization": f"Bearer {key}"})


def call(process: Process, key: str, tool: str, **arguments: object) -> None:
    params = {"name": tool, "arguments": arguments}
    response = ask(process, key, {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params})
    assert response.json()["result"]["isError"] is False, response.text


@pytest.mark.parametrize(
    "command",
    [
        *("", "serve", "worker", "migrate", "check", "sign-proxy-url", "webhooks", "platform-double"),
        *("shop", "shop add", "shop key", "shop list", "shop locations"),
    ],
)
def test_every_command_has_help(command: str) -> None:
    explained = run_holdfast("inventory", *command.split(), "--help")

    assert explained.returncode == 0
    assert "Usage" in explained.stdout


def test_a_shops_key_is_printed_alone_on_the_last_line_and_works(operator: ShopOperator, inventory_url: str) -> None:
    lines = operator.run("shop", "add", DOMAIN).splitlines()

    assert re.fullmatch(r"Shop \d+, ada\.myshopify\.com, shared inventory \d+\.", lines[0])
    assert KEY.fullmatch(lines[-1])
    with running_processes(inventory_url, Path(operator.environment["HOLDFAST_DATA_DIR"]), 1, service="inventory") as (
        process,
    ):
        assert ask(process, lines[-1]).status_code == 200


def test_a_key_of_a_shop_can_be_shown_again(operator: ShopOperator) -> None:
    key = operator.add()

    assert operator.run("shop", "key", DOMAIN) == f"{key}\n"


@pytest.mark.parametrize("domain", ["ada", "ADA.myshopify.com"])
def test_an_invalid_domain_is_refused_in_one_line(operator: ShopOperator, domain: str) -> None:
    complaint = operator.run("shop", "add", "--", domain, status=1)

    assert "must look like my-shop.myshopify.com" in complaint
    assert "Traceback" not in complaint


def test_a_shop_can_be_added_once(operator: ShopOperator) -> None:
    key = operator.add()

    assert "this shop exists already" in operator.run("shop", "add", DOMAIN, status=1)
    assert operator.run("shop", "key", DOMAIN) == f"{key}\n"


def test_an_unknown_shop_has_no_key(operator: ShopOperator) -> None:
    for more in ([], ["--regenerate"]):
        assert "No shop has the domain" in operator.run("shop", "key", DOMAIN, *more, status=1)


def test_a_regenerated_key_replaces_the_old_one_at_once_in_a_running_server(
    operator: ShopOperator, inventory_url: str, tmp_path: Path
) -> None:
    old = operator.add()
    with running_processes(inventory_url, tmp_path, 1, service="inventory") as (process,):
        assert ask(process, old).status_code == 200

        new = operator.run("shop", "key", DOMAIN, "--regenerate").strip()

        assert (ask(process, old).status_code, ask(process, new).status_code) == (401, 200)

        operator.run("shop", "key", DOMAIN, "--revoke")

        assert ask(process, new).status_code == 401
        assert "has no key." in operator.run("shop", "key", DOMAIN, "--revoke", status=1)
    assert KEY.fullmatch(new)
    assert new != old


def test_a_regenerated_key_has_the_scopes_named_or_those_it_had(
    operator: ShopOperator, inventory_url: str, tmp_path: Path
) -> None:
    def scopes() -> list[str]:
        with psycopg.connect(inventory_url) as connection:
            row = connection.execute("select scopes from api_keys where active").fetchone()
            assert row
            return row[0]

    operator.add()
    assert sorted(scopes()) == ["read_inventory", "read_pools", "write_inventory", "write_pools"]

    operator.run("shop", "key", DOMAIN, "--regenerate", "--scope", "read_pools", "--scope", "read_inventory")
    assert sorted(scopes()) == ["read_inventory", "read_pools"]
    operator.run("shop", "key", DOMAIN, "--regenerate")
    assert sorted(scopes()) == ["read_inventory", "read_pools"]


def test_scopes_that_do_not_exist_or_change_nothing_are_refused(operator: ShopOperator) -> None:
    key = operator.add()

    unknown = operator.run("shop", "key", DOMAIN, "--regenerate", "--scope", "read_orders", status=1)
    alone = operator.run("shop", "key", DOMAIN, "--scope", "read_pools", status=2)

    assert "unknown: read_orders" in unknown
    assert "--regenerate" in alone
    assert operator.run("shop", "key", DOMAIN) == f"{key}\n"


def test_a_signed_address_is_answered_by_the_running_server(
    operator: ShopOperator, inventory_url: str, tmp_path: Path
) -> None:
    key = operator.add()
    with running_processes(inventory_url, tmp_path, 1, service="inventory") as (process,):
        members = [{"variant_gid": SINGLE, "units_per_sale": 1}]
        call(process, key, "create_pool", name="Honey jars", quantity=50, members=members)

        url = operator.run("sign-proxy-url", DOMAIN, "--base-url", f"{process.url}/").strip()

        assert url.startswith(f"{process.url}/storefront/availability?shop={DOMAIN}&")
        assert httpx2.get(url).json()["variants"] == {SINGLE: 50}


def test_a_signed_address_uses_the_configured_secret(operator: ShopOperator) -> None:
    operator.environment["INVENTORY_CLIENT_SECRET"] = "hush"
    operator.environment["INVENTORY_BASE_URL"] = "https://stock.example.com"
    hush = operator.run("sign-proxy-url", DOMAIN)
    operator.environment["INVENTORY_CLIENT_SECRET"] = "hash"

    assert hush.startswith("https://stock.example.com/storefront/availability?")
    assert operator.run("sign-proxy-url", DOMAIN).rpartition("=")[2] != hush.rpartition("=")[2]


def test_the_command_check_passes_or_names_the_damage(
    operator: ShopOperator, inventory_url: str, tmp_path: Path
) -> None:
    key = operator.add()
    with running_processes(inventory_url, tmp_path, 1, service="inventory") as (process,):
        call(process, key, "create_pool", name="Honey jars", quantity=50)
        call(process, key, "adjust_pool_quantity", pool_id=1, delta=-6)
    assert operator.run("check") == "Every pool holds what its ledger says.\n"

    with psycopg.connect(inventory_url) as connection:
        connection.execute("update pools set on_hand = 50")

    complaint = operator.run("check", status=1)
    assert complaint.startswith("Pool 1: on_hand 50, its ledger sums to 44, its last balance is 44;")


def test_locations_are_listed_and_quantities_spread_over_them(operator: ShopOperator, inventory_url: str) -> None:
    operator.add()
    shop, warehouse, stall = "shop", "gid://shopify/Location/1", "gid://shopify/Location/2"
    assert operator.run(shop, "locations", DOMAIN) == ""
    with psycopg.connect(inventory_url) as connection:
        for gid, name in ((warehouse, "Warehouse"), (stall, "Market stall")):
            connection.execute(
                "insert into locations (shop_id, gid, name, active) select id, %s, %s, true from shops", [gid, name]
            )

    def locations(*words: str) -> list[list[str]]:
        return [line.split("\t") for line in operator.run(shop, "locations", DOMAIN, *words).splitlines()]

    names = [[stall, "Market stall"], [warehouse, "Warehouse"]]
    all_of_each = [[*name, "all"] for name in names]
    nowhere = [[*name, "0"] for name in names]
    spread = [[*names[0], "30"], [*names[1], "70"]]
    assert sorted(locations(), reverse=True) == nowhere
    shares = ["--share", f"{warehouse}=70", "--share", f"{stall}=30"]
    assert sorted(locations(*shares), reverse=True) == sorted(locations(), reverse=True) == spread
    assert sorted(locations("--all"), reverse=True) == all_of_each


@pytest.mark.parametrize(
    ("words", "status", "complaint"),
    [
        (["--all", "--share", "gid://shopify/Location/1=100"], 2, "--share does not go with --all."),
        (["--share", "gid://shopify/Location/1"], 2, "is not such as gid://shopify/Location/1=70."),
        (["--share", "gid://shopify/Location/1=-5"], 2, "is not such as gid://shopify/Location/1=70."),
        (["--share", "gid://shopify/Location/1=100"], 1, "the shop has no location gid://shopify/Location/1"),
    ],
)
def test_invalid_shares_of_locations_are_refused(
    operator: ShopOperator, words: list[str], status: int, complaint: str
) -> None:
    operator.add()

    assert complaint in re.sub(r"[│\s]+", " ", operator.run("shop", "locations", DOMAIN, *words, status=status))
    assert "No shop has the domain" in operator.run("shop", "locations", "ben.myshopify.com", status=1)


def test_webhooks_that_could_not_be_handled_are_listed_and_tried_again(
    operator: ShopOperator, inventory_url: str
) -> None:
    operator.add()
    assert operator.run("webhooks") == "No webhook is parked or waits.\n"
    with psycopg.connect(inventory_url) as connection:
        connection.execute(
            """insert into webhooks (shop_id, webhook_id, topic, payload, due_at, attempts, error)
               select shops.id, webhook.* from shops cross join (values
                   ('w1', 'orders/updated', '{}'::bytea, null::timestamptz, 14, 'ValueError: no such line'),
                   ('w2', 'orders/updated', '{}', '2126-01-02 03:04:05Z', 3, 'It is away.')) as webhook"""
        )

    waiting, parked, summary = operator.run("webhooks").splitlines()
    again = operator.run("webhooks", "--retry", parked.partition("\t")[0])

    assert parked.endswith(f"\t{DOMAIN}\torders/updated\tafter 14 attempts\tValueError: no such line")
    assert waiting.endswith("\tafter 3 attempts, again at 2126-01-02T03:04:05+00:00\tIt is away.")
    assert summary == "Parked webhooks: 1. Webhooks that wait for another attempt: 1."
    assert again == "Tried again: 1.\n"
    assert operator.run("webhooks", "--retry-all") == "Tried again: 1.\n"
    assert "No webhook with the id 999 is parked or waits" in operator.run("webhooks", "--retry", "999", status=1)


def test_migrate_says_what_it_would_do_and_then_does_it(inventory_template: str, tmp_path: Path) -> None:
    with psycopg.connect(inventory_template, dbname="postgres", autocommit=True) as connection:
        connection.execute("create database inventory_not_migrated")
    operator = ShopOperator(make_conninfo(inventory_template, dbname="inventory_not_migrated"), tmp_path)

    dry = operator.run("migrate", "--dry-run")
    refusals = [
        operator.run(*words, status=1) for words in (["serve", "--port", "0"], ["shop", "add", DOMAIN], ["check"])
    ]
    done = operator.run("migrate")

    assert "would apply 0001_baseline.sql" in dry
    assert all("holdfast inventory migrate" in complaint for complaint in refusals)
    assert "applied 0001_baseline.sql" in done
    assert operator.run("migrate", "--dry-run") == "The schema is up to date.\n"
    assert KEY.fullmatch(operator.add())


def test_an_operator_names_owners_and_hands_a_link_to_the_console_over(operator: ShopOperator) -> None:
    operator.run("shop", "add", DOMAIN, "--owner", "ada@example.com")
    operator.add("ben.myshopify.com")

    link = operator.run("console-link", DOMAIN, "--base-url", "https://stock.example.com/")
    without = operator.run("console-link", "ben.myshopify.com", status=1)
    refusal = operator.run("shop", "owner", "ben.myshopify.com", "ada@example.com", status=1)
    named = operator.run("shop", "owner", "ben.myshopify.com", "Ben@example.com")

    assert re.fullmatch(r"https://stock\.example\.com/sign-in/[0-9]+-[0-9a-f]{64}\n", link)
    assert "holdfast inventory shop owner" in without
    assert "email" in refusal
    assert named == "ben@example.com signs in to ben.myshopify.com at http://127.0.0.1:8001/console.\n"
