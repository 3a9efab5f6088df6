"""Access tokens at the agent door: whom they act for, what they may do, and where they are good for nothing."""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, AsyncIterator
from typing import Any

import httpx2
import psycopg
import pytest

from holdfast.events.api import OPERATIONS
from holdfast.events.oauth import operations
from holdfast.events.oauth.model import LinkSubject
from holdfast.events.settings import Settings
from holdfast.kit import keys
from tests.events.oauth.authorization_server import AuthorizationServer, new_key
from tests.kit.mcp.wire import STATELESS, Agent
from tests.support import Client, Service, running

SCOPES = "read_events write_events manage_keys"


class Scene:
    """The service, an organizer who has an account at the authorization server too, and agents with tokens."""

    def __init__(self, service: Service, server: AuthorizationServer, ada: Client, email: str) -> None:
        self.service = service
        self.server = server
        self.ada = ada
        self.email = email

    def token(self, **claims: Any) -> str:
        """A token with the organizer's verified address, but for what is given."""
        given: dict[str, Any] = {"sub": "ada", "email": self.email, "email_verified": True, **claims}
        return self.server.token(**given)

    def agent(self, version: str = "2025-11-25", **claims: Any) -> Agent:
        return Agent(self.service.app, self.token(**claims), version)

    async def organizer(self, **claims: Any) -> int:
        """The id of the organizer a token acts for, who is the only one it sees."""
        result = await self.agent(**claims).call("list_organizers")
        [seen] = result["structuredContent"]["data"]
        return seen["id"]

    async def links(self) -> list[tuple[Any, ...]]:
        """Who is linked to whom, and by which address."""
        return await self.service.run_sql("select subject, user_id, email from oauth_subjects order by subject")


@pytest.fixture
def with_issuer(settings: Settings, server: AuthorizationServer) -> Settings:
    return settings.model_copy(update={"oauth_issuer": server.issuer})


@contextlib.asynccontextmanager
async def furnished(settings: Settings, server: AuthorizationServer) -> AsyncGenerator[Scene]:
    async with running(settings) as service:
        ada = await service.organizer(email="ada@example.com")
        yield Scene(service, server, ada, "ada@example.com")


@pytest.fixture
async def scene(with_issuer: Settings, server: AuthorizationServer) -> AsyncIterator[Scene]:
    async with furnished(with_issuer, server) as scene:
        yield scene


def refused(response: httpx2.Response) -> tuple[int, str]:
    body = response.json()
    assert {"error", "code", "hint"} <= body.keys()
    return response.status_code, body["code"]


# Whom a token acts for


@pytest.mark.parametrize("version", ["2025-11-25", STATELESS])
async def test_a_token_with_an_organizers_verified_address_acts_for_the_organizer(scene: Scene, version: str) -> None:
    ben = await scene.service.organizer()
    theirs = await ben.create_event()
    agent = scene.agent(version)

    mine = (await agent.call("list_events"))["structuredContent"]
    assert mine["data"] == []
    event = await scene.ada.create_event()
    seen = (await agent.call("list_events"))["structuredContent"]["data"]
    assert [each["id"] for each in seen] == [event["id"]]
    other = await agent.call("get_event", event_id=theirs["id"])
    assert other["isError"] is True
    assert '"forbidden"' in other["content"][0]["text"]


async def test_addresses_are_compared_without_regard_to_case(scene: Scene) -> None:
    assert await scene.organizer(email="Ada@EXAMPLE.com") == scene.ada.id


@pytest.mark.parametrize("verified", [None, False, "true", 1, "yes", [True]])
async def test_an_address_that_is_not_verified_proves_nothing(scene: Scene, verified: Any) -> None:
    response = await scene.agent(email_verified=verified).ask("tools/list")

    assert refused(response) == (403, "forbidden")
    assert "no verified e-mail address" in response.json()["error"]
    assert "holdfast events organizer link SLUG SUBJECT" in response.json()["hint"]
    assert await scene.links() == []


async def test_whoever_is_no_organizer_yet_registers_and_goes_on(scene: Scene) -> None:
    new = scene.agent(sub="new", email="new@example.com")
    response = await new.ask("tools/list")

    assert refused(response) == (403, "forbidden")
    assert "POST /api/organizers/register" in response.json()["hint"]
    registered = await scene.service.organizer(email="new@example.com")
    assert await scene.organizer(sub="new", email="new@example.com") == registered.id


async def test_no_token_reaches_a_student_or_an_admin(scene: Scene) -> None:
    event = await scene.ada.create_event()
    await scene.ada.register(event["id"], email="student@example.com")
    await scene.service.run_sql(
        "insert into users (public_id, email, role) values ('aaaaaaaa', 'root@example.com', 'admin')"
    )

    for number, email in enumerate(["student@example.com", "root@example.com"]):
        response = await scene.agent(sub=f"sub-{number}", email=email).ask("tools/list")
        assert refused(response) == (403, "forbidden")
    assert await scene.links() == []


@pytest.mark.parametrize("role", ["admin", "user"])
async def test_a_link_ends_when_the_organizer_is_none_any_more(scene: Scene, role: str) -> None:
    assert await scene.organizer() == scene.ada.id
    await scene.service.run_sql(
        "update users set role = %(role)s::user_role where id = %(id)s", role=role, id=scene.ada.id
    )

    await scene.service.organizer(email="ben@example.com")
    async with running(scene.service.database.settings) as fresh:  # one that remembers nothing
        for email in (scene.email, "ben@example.com"):
            response = await Agent(fresh.app, scene.token(email=email)).ask("tools/list")
            assert refused(response) == (403, "forbidden")


async def test_a_subject_is_never_taken_for_one_of_our_own_names(scene: Scene) -> None:
    [(public_id,)] = await scene.service.run_sql("select public_id from users where id = %(id)s", id=scene.ada.id)

    for subject in (str(scene.ada.id), public_id, scene.ada.slug, scene.email, str(scene.ada.key)):
        response = await scene.agent(sub=subject, email=None).ask("tools/list")
        assert refused(response) == (403, "forbidden")


async def test_once_linked_the_subject_decides_whatever_the_address_says(scene: Scene) -> None:
    ben = await scene.service.organizer(email="ben@example.com")
    assert await scene.organizer() == scene.ada.id

    for claims in ({"email": "ben@example.com"}, {"email": None}, {"email_verified": False}, {"email": "x@y.example"}):
        assert await scene.organizer(**claims) == scene.ada.id
    assert await scene.organizer(sub="ben", email="ben@example.com") == ben.id
    assert await scene.links() == [("ada", scene.ada.id, "ada@example.com"), ("ben", ben.id, "ben@example.com")]


async def test_the_same_subject_of_another_issuer_is_somebody_else(scene: Scene, with_issuer: Settings) -> None:
    ben = await scene.service.organizer()
    await scene.service.database.transact(
        lambda tx: operations.link(tx, "https://else.example", LinkSubject(slug=ben.slug, subject="ada"))
    )

    assert await scene.organizer() == scene.ada.id


async def test_calls_that_come_first_all_at_once_make_one_link(scene: Scene) -> None:
    async with running(scene.service.database.settings) as other:
        for sub in ("ada", "ada's phone", "ada's desk"):
            tokens = [scene.token(sub=sub, jti=str(number)) for number in range(10)]
            agents = [Agent(process.app, token) for token in tokens for process in (scene.service, other)]
            answers = await asyncio.gather(*(agent.call("list_organizers") for agent in agents))
            assert {answer["structuredContent"]["data"][0]["id"] for answer in answers} == {scene.ada.id}

    links = await scene.links()
    assert links == [(sub, scene.ada.id, "ada@example.com") for sub in ("ada", "ada's desk", "ada's phone")]


async def test_first_calls_with_two_addresses_at_once_agree_on_one(scene: Scene) -> None:
    ben = await scene.service.organizer(email="ben@example.com")
    emails = ["ada@example.com", "ben@example.com"] * 10

    seen = await asyncio.gather(*(scene.organizer(email=email) for email in emails))

    [(_, linked, _)] = await scene.links()
    assert set(seen) == {linked} <= {scene.ada.id, ben.id}


async def test_a_link_is_looked_up_once_a_second_at_most(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    await scene.organizer()
    monkeypatch.setattr(keys, "TTL", 3600.0)
    await scene.organizer()
    await scene.service.run_sql("delete from oauth_subjects")

    assert await scene.organizer(email=None) == scene.ada.id


async def test_the_database_holds_a_link_to_its_fingerprint(scene: Scene) -> None:
    await scene.organizer()

    for change in ("subject = 'eve'", "issuer = 'https://else.example'", "hash = sha256('x')"):
        with pytest.raises(psycopg.errors.CheckViolation):
            await scene.service.run_sql(f"update oauth_subjects set {change}")  # type: ignore[arg-type]


# By hand


async def test_the_operators_link_is_heard_of_at_once(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keys, "TTL", 3600.0)  # so that only the announcement can be what ends it
    ben = await scene.service.organizer()
    for _ in range(2):
        assert await scene.organizer() == scene.ada.id

    await scene.service.database.transact(
        lambda tx: operations.link(tx, scene.server.issuer, LinkSubject(slug=ben.slug, subject="ada", move=True))
    )

    assert await scene.organizer() == ben.id
    assert await scene.links() == [("ada", ben.id, None)]


# What a token may do


async def test_a_token_may_do_what_its_scopes_allow(scene: Scene) -> None:
    agent = scene.agent(scope="openid read_events")

    tools = {tool["name"] for tool in (await agent.result("tools/list"))["tools"]}
    assert tools == {each.name for each in OPERATIONS if each.tool and each.scope == "read_events"}
    response = await agent.ask("tools/call", {"name": "create_event", "arguments": {}})
    assert refused(response) == (403, "insufficient_scope")
    challenge = response.headers["www-authenticate"]
    assert 'error="insufficient_scope", scope="write_events"' in challenge
    assert "resource_metadata=" in challenge


async def test_a_token_without_any_scope_of_ours_may_do_nothing(scene: Scene) -> None:
    for scope in (None, "", "openid email", "admin"):
        agent = scene.agent(scope=scope)
        assert (await agent.result("tools/list"))["tools"] == []
        for each in OPERATIONS:
            if each.tool:
                response = await agent.ask("tools/call", {"name": each.name, "arguments": {}})
                assert refused(response) == (403, "insufficient_scope")


async def test_keys_are_made_only_with_the_scope_for_it(scene: Scene) -> None:
    minting = {"name": "create_api_key", "arguments": {"name": "For later"}}
    weaker = scene.agent(scope="read_events write_events")

    assert refused(await weaker.ask("tools/call", minting)) == (403, "insufficient_scope")
    made = (await scene.agent(scope="manage_keys").call("create_api_key", name="For later"))["structuredContent"]
    assert made["user_id"] == scene.ada.id
    listed = await Client(scene.service.http, made["key"]).get("/api/organizers")
    assert [each["id"] for each in listed.json()["data"]] == [scene.ada.id]


async def test_a_token_makes_no_key_for_somebody_else(scene: Scene) -> None:
    ben = await scene.service.organizer()

    result = await scene.agent().call("create_api_key", name="Theirs", user_id=ben.id)

    assert result["isError"] is True
    assert '"forbidden"' in result["content"][0]["text"]


# Where tokens are good, and where they are not


async def test_tokens_are_refused_at_every_door_but_the_one_for_agents(scene: Scene) -> None:
    token = scene.token()
    assert (await Agent(scene.service.app, token).ask("ping")).status_code == 200

    for each in OPERATIONS:
        if each.route and not each.public:
            path = each.path.format(id=1, event_id=1, user_id="abcdefgh")
            for headers in ({"Authorization": f"Bearer {token}"}, {"X-API-Key": token}):
                response = await scene.service.http.request(each.method, path, headers=headers)
                assert refused(response) == (401, "invalid_api_key")


async def test_keys_go_on_working_beside_tokens(scene: Scene) -> None:
    admin = await scene.service.admin()
    for key, count in ((scene.ada.key, 1), (admin.key, 1)):
        seen = (await Agent(scene.service.app, key).call("list_organizers"))["structuredContent"]["data"]
        assert len(seen) == count
    assert refused(await Agent(scene.service.app).ask("ping")) == (401, "missing_api_key")
    assert refused(await Agent(scene.service.app, "hf_" + "A" * 43).ask("ping")) == (401, "invalid_api_key")
    assert scene.server.asked.total() == 0


async def test_without_an_issuer_tokens_are_no_credentials(settings: Settings, server: AuthorizationServer) -> None:
    async with furnished(settings, server) as scene:
        response = await scene.agent().ask("ping")

        assert refused(response) == (401, "invalid_api_key")
        assert response.json()["error"] == "This is not an API key of this service."
    assert server.asked.total() == 0


async def test_a_bad_token_is_told_why(scene: Scene) -> None:
    response = await scene.agent(exp=1).ask("ping")

    assert refused(response) == (401, "invalid_api_key")
    assert response.json()["error"] == "The access token has expired."
    assert scene.server.issuer in response.json()["hint"]
    challenge = response.headers["www-authenticate"]
    assert 'error="invalid_token", error_description="The access token has expired."' in challenge
    assert 'resource_metadata="http://events.test/.well-known/oauth-protected-resource/mcp"' in challenge


async def test_tokens_for_another_resource_are_refused_unless_it_is_the_one_that_is_set(
    scene: Scene, with_issuer: Settings
) -> None:
    for audience in ("http://events.test", "http://other.test/mcp", "project-7"):
        assert refused(await scene.agent(aud=audience).ask("ping")) == (401, "invalid_api_key")

    async with running(with_issuer.model_copy(update={"oauth_audience": "project-7"})) as other:
        assert (await Agent(other.app, scene.token(aud=["project-7"])).ask("ping")).status_code == 200
        assert refused(await Agent(other.app, scene.token()).ask("ping")) == (401, "invalid_api_key")


async def test_a_forged_token_links_nobody(scene: Scene) -> None:
    for key in (new_key(), new_key(kid=scene.server.keys[0].kid)):
        response = await scene.agent(key=key).ask("ping")
        assert refused(response) == (401, "invalid_api_key")
    assert await scene.links() == []


async def test_without_the_authorization_server_tokens_are_asked_to_come_back_and_keys_are_not(scene: Scene) -> None:
    scene.server.fail()

    response = await scene.agent().ask("tools/list")

    assert refused(response) == (503, "service_unavailable")
    assert int(response.headers["retry-after"]) >= 1
    assert "www-authenticate" not in response.headers
    assert (await Agent(scene.service.app, scene.ada.key).ask("ping")).status_code == 200


# Settings


@pytest.mark.parametrize(
    "issuer",
    ["login.example", "https://", "https://login.example?x", "ftp://login.example", "https://a b", "https://a\n"],
)
def test_an_issuer_is_an_address(issuer: str) -> None:
    with pytest.raises(ValueError, match="OAUTH_ISSUER"):
        Settings.model_validate({"OAUTH_ISSUER": issuer})


@pytest.mark.parametrize(
    "issuer", ["", "https://login.example", "https://login.example/", "http://127.0.0.1:9/realms/x"]
)
def test_an_issuer_is_kept_to_the_letter(issuer: str) -> None:
    assert Settings.model_validate({"OAUTH_ISSUER": issuer}).oauth_issuer == issuer
