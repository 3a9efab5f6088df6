"""Cards, catalogs and texts have the fields that their specifications demand."""

import re

import httpx2
import pytest
from openapi_spec_validator import OpenAPIV31SpecValidator, validate

from holdfast.kit.mcp.endpoint import VERSIONS
from tests.events.agents.documents import A2A, AI_CATALOG, BASE_URL, CARDS, CATALOG, LINKSET, document, fits
from tests.events.agents.samples import TOOLS, agent
from tests.helpers.discovery import AGENT_CARD, SERVER_CARD
from tests.helpers.events_service import Service


async def test_the_server_card_has_what_its_schema_demands(http: httpx2.AsyncClient) -> None:
    card = await document(http, CARDS[0])

    fits(card, SERVER_CARD)
    (remote,) = card["remotes"]
    (header,) = remote["headers"]
    assert (remote["url"], remote["supportedProtocolVersions"]) == (f"{BASE_URL}/mcp", list(VERSIONS))
    assert (header["name"], header["isRequired"], header["isSecret"]) == ("Authorization", True, True)
    assert header["value"].format(**dict.fromkeys(header["variables"], "hf_x")) == "Bearer hf_x"


async def test_the_server_card_says_what_the_server_says_of_itself(service: Service) -> None:
    card = await document(service.http, CARDS[0])
    ada = await service.organizer()

    for version in card["remotes"][0]["supportedProtocolVersions"]:
        asking = agent(service, ada, version)
        if version == VERSIONS[0]:
            server_info = await asking.result("server/discover")
            assert set(server_info["supportedVersions"]) == {*VERSIONS}
            identity = server_info["_meta"]["io.modelcontextprotocol/serverInfo"]
        else:
            server_info = await asking.result("initialize", {"protocolVersion": version, "capabilities": {}})
            assert server_info["protocolVersion"] == version
            identity = server_info["serverInfo"]
        assert {name: card[name] for name in ("name", "title", "version")} == identity


async def test_the_agent_card_has_what_both_versions_of_a2a_demand(http: httpx2.AsyncClient) -> None:
    card = await document(http, A2A[0])

    fits(card, AGENT_CARD)
    (interface,) = card["supportedInterfaces"]
    assert (interface["url"], interface["protocolBinding"]) == (f"{BASE_URL}/mcp", "MCP")
    assert (card["url"], card["preferredTransport"]) == (f"{BASE_URL}/mcp", "MCP")
    assert card["securitySchemes"]["apiKey"]["apiKeySecurityScheme"]["name"] == "X-API-Key"
    either = [name for requirement in card["securityRequirements"] for name in requirement["schemes"]]
    assert either == [*card["securitySchemes"]] == ["bearer", "apiKey"]
    assert [skill["id"] for skill in card["skills"]] == [*TOOLS]


async def test_the_api_catalog_has_links_for_each_interface(http: httpx2.AsyncClient) -> None:
    catalog = await document(http, CATALOG)

    fits(catalog, LINKSET)
    contexts = {link["anchor"]: link for link in catalog["linkset"]}
    assert [*contexts] == [f"{BASE_URL}/api", f"{BASE_URL}/mcp"]
    for context in contexts.values():
        assert {"service-desc", "service-doc", "service-meta", "status"} <= set(context)


async def test_a_head_request_finds_the_api_catalog(http: httpx2.AsyncClient) -> None:
    for path in (CATALOG, "/api"):
        for response in (await http.head(path), await http.get(path)):
            assert response.links["api-catalog"]["url"] == f"{BASE_URL}{CATALOG}"


async def test_the_ai_catalog_leads_to_the_server_card(http: httpx2.AsyncClient) -> None:
    catalog = await document(http, AI_CATALOG)
    (entry,) = catalog["entries"]

    assert catalog == {"specVersion": "1.0", "entries": [entry]}
    assert set(entry) == {"identifier", "type", "url"}
    assert entry["identifier"] == "urn:air:events.test:mcp:events"
    fits((await http.get(entry["url"], headers={"Accept": entry["type"]})).json(), SERVER_CARD)


async def test_openapi_is_valid(http: httpx2.AsyncClient) -> None:
    spec = await document(http, "/openapi.json")

    validate(spec, cls=OpenAPIV31SpecValidator)
    assert [server["url"] for server in spec["servers"]] == [BASE_URL]


async def test_llms_txt_has_its_format(http: httpx2.AsyncClient) -> None:
    """llmstxt.org: a title, a summary, prose without headings, and lists of links under headings."""
    text = await document(http, "/llms.txt")
    before, *sections = re.split(r"^## (.+)\n", text, flags=re.MULTILINE)

    assert re.match(r"# [^\n]+\n\n> [^\n]+\n\n", before)
    assert len(re.findall(r"^#", text, re.MULTILINE)) == 1 + len(sections[::2])
    assert sections[::2] == ["Documents", "Optional"]
    for section in sections[1::2]:
        for line in section.strip().splitlines():
            assert re.fullmatch(r"- \[[^\]]+\]\(https?://[^\s)]+\): \S.+", line), line
    assert len(text) < 50_000


@pytest.mark.parametrize("path", ["/agents.md", "/docs.md"])
async def test_a_text_in_markdown_has_one_title_and_tables_without_holes(http: httpx2.AsyncClient, path: str) -> None:
    text = re.sub(r"^```.*?^```$", "", await document(http, path), flags=re.DOTALL | re.MULTILINE)

    assert re.findall(r"^# (.+)$", text, re.MULTILINE) == [text.splitlines()[0][2:]]
    tables = re.findall(r"(?:^\|.*\|\n)+", text, re.MULTILINE)
    assert tables
    for table in tables:
        head, rule, *rows = ([*re.split(r"(?<!\\)\|", line)[1:-1]] for line in table.splitlines())
        assert {*rule} == {"---"}
        assert rows
        assert {len(row) for row in rows} | {len(head)} == {len(rule)}, table
