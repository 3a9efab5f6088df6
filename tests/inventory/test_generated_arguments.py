"""Arguments generated from the schemas of the tools are answered as the schemas say, never with a failure."""

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import httpx2
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from tests.helpers.databases import scratch_database
from tests.helpers.generated import Schema, fits, from_schema
from tests.helpers.inventory_service import SINGLE, SIX_PACK, TOOLS, TWELVE_PACK, running_inventory, unlimited
from tests.helpers.processes import running_processes
from tests.inventory.samples import prepare_shop

GIDS = st.sampled_from([SINGLE, SIX_PACK, TWELVE_PACK, "gid://shopify/ProductVariant/99999999999999999999"])
SHEETS = st.sampled_from(
    [
        "name,quantity\nHoney jars,5\n",
        "name,unit,quantity,buffer,low_stock_at\nΟΔΟΣ,g,1,2,3\nοδος,g,1,2,3\n",  # noqa: RUF001
        "name\nİstanbul\ni̇stanbul\n",
        f"pool,variant_gid,units_per_sale\nHoney jars,{SIX_PACK},5\nLids,{SIX_PACK},1\n",
        "name,quantity\nLids,-1000000000000\n",
        'name\n"unclosed',
    ]
)


def known_values(schema: Schema) -> st.SearchStrategy[str] | None:
    """Variants and spreadsheets."""
    if "ProductVariant" in schema.get("description", "") or schema.get("maxLength") == 120:
        return GIDS
    if schema["maxLength"] > 100_000:
        return SHEETS | st.text(min_size=1, max_size=300)
    return None


class ServedInventory(NamedTuple):
    """The service in a process of its own, and what it says of its tools."""

    http: httpx2.Client
    tools: dict[str, Any]


def rpc(http: httpx2.Client, method: str, **params: Any) -> dict[str, Any]:
    response = http.post("/mcp", json={"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
    assert response.status_code == 200, response.text
    return response.json()


@pytest.fixture(scope="module")
def service_process(inventory_template: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServedInventory]:
    """A prepared shop, asked by its agent. What has happened to its books by the end is right."""
    data: Path = tmp_path_factory.mktemp("data")
    with scratch_database(inventory_template, "generated_inventory") as url:

        async def prepare_key() -> str:
            async with running_inventory(unlimited(url, data)) as inventory:
                return (await prepare_shop(inventory)).key

        key = asyncio.run(prepare_key())
        with (
            running_processes(url, data, 1, service="inventory") as (process,),
            httpx2.Client(base_url=process.url, headers={"authorization": f"Bearer {key}"}, timeout=30) as http,
        ):
            tools = {tool["name"]: tool for tool in rpc(http, "tools/list")["result"]["tools"]}
            yield ServedInventory(http, tools)

        async def differences() -> list[str]:
            async with running_inventory(unlimited(url, data)) as inventory:
                return await inventory.ledger_differences()

        assert asyncio.run(differences()) == []


@pytest.mark.parametrize("tool", TOOLS)
def test_input_and_output_schemas_of_tools_are_valid_json_schemas(service_process: ServedInventory, tool: str) -> None:
    for name in ("inputSchema", "outputSchema"):
        Draft202012Validator.check_schema(service_process.tools[tool][name])
        assert service_process.tools[tool][name]["type"] == "object"


@pytest.mark.parametrize("tool", TOOLS)
def test_arguments_that_fit_the_schema_are_answered_as_promised_or_refused_in_words(
    service_process: ServedInventory, tool: str
) -> None:
    about = service_process.tools[tool]

    @settings(
        max_examples=80,
        phases=[Phase.generate, Phase.shrink],
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
    )
    @given(from_schema(about["inputSchema"], known_values))
    def answered(arguments: dict[str, Any]) -> None:
        answer = rpc(service_process.http, "tools/call", name=tool, arguments=arguments)

        assert "result" in answer, answer
        result = answer["result"]
        parsed = json.loads(result["content"][0]["text"])
        if result.get("isError"):
            assert parsed["code"] not in {"internal_error", "service_unavailable"}
            assert parsed["message"]
        else:
            assert fits(about["outputSchema"], parsed)
            assert parsed == result["structuredContent"]

    answered()
