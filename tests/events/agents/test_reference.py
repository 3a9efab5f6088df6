"""The texts for agents name every operation, field and error of the table."""

import re

import httpx2

from holdfast.events.problems import ALL
from holdfast.kit.contract.problems import COMMON_PROBLEMS
from holdfast.kit.mcp.endpoint import VERSIONS
from tests.events.agents.documents import BASE_URL, document
from tests.events.agents.handbook import Handbook
from tests.events.agents.samples import TOOLS
from tests.events.routed import ROUTED


async def test_the_documentation_names_every_operation_every_field_and_every_error(http: httpx2.AsyncClient) -> None:
    text = await document(http, "/docs.md")
    operations = dict(re.findall(r"^### (\w+ /\S+)\n\n(.*?)(?=^##)", text, re.DOTALL | re.MULTILINE))
    errors = Handbook(text).table("status", "code", "meaning", "what to do")

    # What one address does stands together, at its first place in the table.
    addresses = [*dict.fromkeys(operation.path for operation in ROUTED)]
    in_order = sorted(ROUTED, key=lambda operation: addresses.index(operation.path))
    assert [*operations] == [f"{operation.method} {operation.path}" for operation in in_order]
    for operation, section in zip(in_order, operations.values(), strict=True):
        assert section.startswith(f"`{operation.name}`")
        assert operation.description in section
        assert re.findall(r"^\| `(\w+)` \|", section, re.MULTILINE) == [
            *operation.path_fields,
            *(name for name in operation.command.__struct_fields__ if name not in operation.path_fields),
            # What its caller may send back although it cannot be changed.
            *operation.read_only_fields,
        ]
    assert {(int(status), code, meaning, hint) for status, code, meaning, hint in errors} == {
        (kind.status, kind.code, kind.meaning, kind.hint) for kind in (*COMMON_PROBLEMS, *ALL)
    }


async def test_the_documentation_has_every_object_of_openapi(http: httpx2.AsyncClient) -> None:
    text = await document(http, "/docs.md")
    objects = text.partition("\n## Objects\n")[2].partition("\n## ")[0]
    spec = await document(http, "/openapi.json")
    object_names = re.findall(r"^### (\w+)$", objects, re.MULTILINE)

    for name in object_names:
        section = objects.partition(f"### {name}\n")[2].partition("\n### ")[0]
        assert re.findall(r"^\| `(\w+)` \|", section, re.MULTILINE) == [
            *spec["components"]["schemas"][name]["properties"]
        ]
    mentioned = set(re.findall(r"^Answers \d+: (?:array of )?(\w+)", text, re.MULTILINE)) - {"no"}
    assert mentioned <= set(object_names)


async def test_the_catalog_lists_the_table(http: httpx2.AsyncClient) -> None:
    catalog = await document(http, "/api")

    listed = [
        (endpoint["name"], endpoint["method"], endpoint["path"], endpoint["tool"]) for endpoint in catalog["endpoints"]
    ]
    assert listed == [
        (operation.name, operation.method, operation.path, operation.name if operation.tool else None)
        for operation in ROUTED
    ]
    assert catalog["authentication"]["header"] == "X-API-Key"
    assert catalog["agent_endpoint"]["url"] == f"{BASE_URL}/mcp"
    assert catalog["agent_endpoint"]["versions"] == list(VERSIONS)


async def test_the_site_map_names_every_tool_with_the_scope_it_needs(http: httpx2.AsyncClient) -> None:
    text = await document(http, "/llms.txt")

    assert re.findall(r"^- `(\w+)` \((\w+)\): (.+)$", text, re.MULTILINE) == [
        (tool.name, tool.scope, tool.summary) for tool in TOOLS.values()
    ]
