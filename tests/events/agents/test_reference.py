"""What is written for agents names everything there is, as the table has it."""

import re

import httpx2

from holdfast.events.api import OPERATIONS
from holdfast.events.problems import ALL
from holdfast.kit.mcp.endpoint import VERSIONS
from holdfast.kit.problems import EVERYWHERE
from tests.events.agents.documents import BASE_URL, document
from tests.events.agents.handbook import Handbook
from tests.events.agents.samples import TOOLS


async def test_the_documentation_names_every_operation_every_field_and_every_error(http: httpx2.AsyncClient) -> None:
    text = await document(http, "/docs.md")
    operations = dict(re.findall(r"^### (\w+ /\S+)\n\n(.*?)(?=^##)", text, re.DOTALL | re.MULTILINE))
    errors = Handbook(text).table("status", "code", "meaning", "what to do")

    # What one address does stands together, at its first place in the table.
    addresses = [*dict.fromkeys(each.path for each in OPERATIONS)]
    in_order = sorted(OPERATIONS, key=lambda each: addresses.index(each.path))
    assert [*operations] == [f"{each.method} {each.path}" for each in in_order]
    for operation, section in zip(in_order, operations.values(), strict=True):
        assert section.startswith(f"`{operation.name}`")
        assert operation.description in section
        assert re.findall(r"^\| `(\w+)` \|", section, re.MULTILINE) == [
            *operation.path_fields,
            *(name for name in operation.command.__struct_fields__ if name not in operation.path_fields),
        ]
    assert {(int(status), code, meaning, hint) for status, code, meaning, hint in errors} == {
        (kind.status, kind.code, kind.meaning, kind.hint) for kind in (*EVERYWHERE, *ALL)
    }


async def test_the_documentation_has_every_object_of_openapi(http: httpx2.AsyncClient) -> None:
    text = await document(http, "/docs.md")
    objects = text.partition("\n## Objects\n")[2].partition("\n## ")[0]
    spec = await document(http, "/openapi.json")
    told = re.findall(r"^### (\w+)$", objects, re.MULTILINE)

    for name in told:
        section = objects.partition(f"### {name}\n")[2].partition("\n### ")[0]
        assert re.findall(r"^\| `(\w+)` \|", section, re.MULTILINE) == [
            *spec["components"]["schemas"][name]["properties"]
        ]
    mentioned = set(re.findall(r"^Answers \d+: (?:array of )?(\w+)", text, re.MULTILINE)) - {"no"}
    assert mentioned <= set(told)


async def test_the_catalog_lists_the_table(http: httpx2.AsyncClient) -> None:
    catalog = await document(http, "/api")

    listed = [(each["name"], each["method"], each["path"], each["tool"]) for each in catalog["endpoints"]]
    assert listed == [(each.name, each.method, each.path, each.name if each.tool else None) for each in OPERATIONS]
    assert catalog["authentication"]["header"] == "X-API-Key"
    assert catalog["agent_endpoint"]["url"] == f"{BASE_URL}/mcp"
    assert catalog["agent_endpoint"]["versions"] == list(VERSIONS)


async def test_the_site_map_names_every_tool_with_the_scope_it_needs(http: httpx2.AsyncClient) -> None:
    text = await document(http, "/llms.txt")

    assert re.findall(r"^- `(\w+)` \((\w+)\): (.+)$", text, re.MULTILINE) == [
        (each.name, each.scope, each.summary) for each in TOOLS.values()
    ]
