"""Resources of the MCP endpoint, in both eras."""

import base64

from tests.helpers.agents import STATELESS, Agent, Kitchen, error_of, open_kitchen
from tests.helpers.cases import in_turn
from tests.kit.mcp.pantry import Pantry

RULES = {
    "uri": "pantry://rules",
    "name": "rules",
    "title": "House rules",
    "description": "How to behave.",
    "mimeType": "text/markdown",
}


def missing_resource(agent: Agent) -> tuple[int, int]:
    """The status and the code of an address of nothing."""
    return (400, -32602) if agent.version == STATELESS else (200, -32002)


async def test_resources_are_listed_documents_first_and_then_the_catalogue_page_by_page(agent: Agent) -> None:
    first = await agent.result("resources/list")
    second = await agent.result("resources/list", {"cursor": first["nextCursor"]})

    beans = {"uri": "jar://1", "name": "jar-1", "title": "Beans", "description": "A jar."}
    assert first["resources"][:2] == [RULES, {**beans, "mimeType": "application/json"}]
    assert [resource["uri"] for resource in first["resources"]] == ["pantry://rules", "jar://1", "jar://2"]
    assert [resource["uri"] for resource in second["resources"]] == ["jar://3"]
    assert "nextCursor" not in second


async def test_a_cursor_that_is_none_is_refused(old: Agent, new_agent: Agent) -> None:
    assert (await old.error("resources/list", {"cursor": "x"}))["code"] == -32602
    assert (await new_agent.error("resources/list", {"cursor": "x"}, status=400))["code"] == -32602
    assert (await new_agent.error("resources/templates/list", {"cursor": "1"}, status=400))["code"] == -32602


async def test_resources_without_the_scope_of_the_catalogue_are_the_documents_only(
    kitchen: Kitchen, agent: Agent
) -> None:
    nobody = await kitchen.agent(version=agent.version)

    listed = await nobody.result("resources/list")

    assert listed["resources"] == [RULES]
    assert "nextCursor" not in listed
    assert (await nobody.ask("resources/list", {"cursor": "2"})).json()["error"]["code"] == -32602


async def test_resource_templates_describe_how_addresses_are_made(agent: Agent) -> None:
    assert (await agent.result("resources/templates/list"))["resourceTemplates"] == [
        {
            "uriTemplate": "jar://{jar_id}",
            "name": "jar",
            "title": "Jar",
            "description": "A jar, and how full it is.",
            "mimeType": "application/json",
        }
    ]


async def test_resource_templates_are_listed_with_their_scope_only(kitchen: Kitchen, agent: Agent) -> None:
    nobody = await kitchen.agent(version=agent.version)

    assert (await nobody.result("resources/templates/list"))["resourceTemplates"] == []


async def test_a_document_is_read_by_anyone(kitchen: Kitchen, agent: Agent) -> None:
    nobody = await kitchen.agent(version=agent.version)

    assert (await nobody.result("resources/read", {"uri": "pantry://rules"}))["contents"] == [
        {"uri": "pantry://rules", "mimeType": "text/markdown", "text": "# Be tidy\n"}
    ]


async def test_a_resource_is_what_its_operation_answers(agent: Agent) -> None:
    assert (await agent.result("resources/read", {"uri": "jar://2"}))["contents"] == [
        {"uri": "jar://2", "mimeType": "application/json", "text": '{"id":2,"label":"Lentils","content":0}'}
    ]


@in_turn(
    "uri",
    [
        *(
            "jar://99",
            "jar://0",
            "jar://01",
            "jar://x",
            "jar://",
            "jar://1/",
            "jar://1/2",
            "jar:/1",
            "xjar://1",
            "JAR://1",
        ),
        *("pantry://rules/", "file:///etc/passwd", "", " ", "jar://%31%00", "jar://\n1", "jar://9223372036854775808"),
    ],
)
async def test_an_unknown_resource_is_refused(agent: Agent, uri: str) -> None:
    status, code = missing_resource(agent)
    message = agent.request("resources/read", {"uri": uri})
    encoded = b"=?base64?" + base64.b64encode(uri.encode()) + b"?="
    headers = [*agent.headers({**message, "params": {}}), (b"mcp-name", encoded)]

    fault = error_of(await agent.post(message, headers), status)

    assert fault["code"] == code
    assert fault["data"] == {"uri": uri}


async def test_a_read_without_an_address_is_refused(old: Agent) -> None:
    for params in ({}, {"uri": None}, {"uri": 5}):
        assert (await old.error("resources/read", params))["code"] == -32602


async def test_reading_needs_the_scope_of_the_operation(kitchen: Kitchen, agent: Agent) -> None:
    nobody = await kitchen.agent(version=agent.version)

    response = await nobody.ask("resources/read", {"uri": "jar://1"})

    assert response.status_code == 403
    assert 'scope="read_jars"' in response.headers["www-authenticate"]


async def test_a_live_resource_is_not_cached_and_a_static_one_is(new_agent: Agent) -> None:
    for method, params, milliseconds in (
        ("resources/list", {}, 0),
        ("resources/read", {"uri": "jar://1"}, 0),
        ("resources/read", {"uri": "pantry://rules"}, 300_000),
        ("resources/templates/list", {}, 300_000),
    ):
        result = await new_agent.result(method, params)
        assert (result["ttlMs"], result["cacheScope"], result["resultType"]) == (milliseconds, "private", "complete")


async def test_answers_in_the_handshake_era_have_no_caching_members(old: Agent) -> None:
    assert set(await old.result("resources/list")) == {"resources", "nextCursor"}
    assert set(await old.result("resources/read", {"uri": "jar://1"})) == {"contents"}


async def test_a_resource_that_exists_can_be_subscribed_to(old: Agent) -> None:
    for method in ("resources/subscribe", "resources/unsubscribe"):
        for uri in ("jar://1", "jar://99", "pantry://rules"):
            assert await old.result(method, {"uri": uri}) == {}
        assert (await old.error(method, {"uri": "nothing://1"}))["code"] == -32002
        assert (await old.error(method))["code"] == -32602


async def test_a_service_without_resources_has_none_of_their_methods(pantry_url: str) -> None:
    async with open_kitchen(Pantry(pantry_url, documents=(), templates=(), listed_by=None)) as kitchen:
        agent = await kitchen.agent()
        introduction = await agent.result("initialize", {"protocolVersion": "2025-11-25"})
        assert introduction["capabilities"] == {"tools": {}}
        for method in ("resources/list", "resources/read", "resources/templates/list", "resources/subscribe"):
            assert (await agent.error(method, {"uri": "jar://1"}))["code"] == -32601
