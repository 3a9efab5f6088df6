"""Whom an access token acts for: by the verified address it came with first, or by the operator's word."""

import asyncio
from typing import Any, LiteralString

import psycopg
import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as hypothesis
from hypothesis import strategies as st

from holdfast.kit import keys
from holdfast.kit.problems import Problem
from tests.events.oauth.scene import Scene, refused
from tests.kit.mcp.wire import STATELESS, Agent
from tests.support import running

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
    refusal = await scene.refusal(email_verified=verified)

    assert "no verified e-mail address" in refusal["error"]
    assert refusal["hint"].startswith("Ask the operator to link it")
    assert await scene.links() == []


async def test_whoever_is_no_organizer_yet_registers_and_goes_on(scene: Scene) -> None:
    refusal = await scene.refusal(sub="new", email="new@example.com")

    assert refusal["error"].endswith("of 'new', and no organizer is registered with new@example.com.")
    assert "POST /api/organizers/register" in refusal["hint"]
    registered = await scene.service.organizer(email="new@example.com")
    assert await scene.organizer(sub="new", email="new@example.com") == registered.id


async def test_no_token_reaches_a_student_or_an_admin(scene: Scene) -> None:
    event = await scene.ada.create_event()
    await scene.ada.register(event["id"], email="student@example.com")
    await scene.service.run_sql(
        "insert into users (public_id, email, role) values ('aaaaaaaa', 'root@example.com', 'admin')"
    )

    for number, email in enumerate(["student@example.com", "root@example.com"]):
        refusal = await scene.refusal(sub=f"sub-{number}", email=email)
        assert refusal["error"].endswith(f"and {email} belongs to an account that is no organizer.")
        assert refusal["hint"].startswith("No organizer can be registered with that address.")
        body = {"organizer": {"name": "Studio", "email": email, "slug": f"slug-{number}"}}
        registered = await scene.service.anonymous.post("/api/organizers/register", body)
        assert registered.json()["errors"] == {"email": ["is already taken"]}
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
            assert "acts for no organizer any more" in response.json()["error"]


async def test_a_subject_is_never_taken_for_one_of_our_own_names(scene: Scene) -> None:
    [(public_id,)] = await scene.service.run_sql("select public_id from users where id = %(id)s", id=scene.ada.id)

    for subject in (str(scene.ada.id), public_id, scene.ada.slug, scene.email, str(scene.ada.key)):
        await scene.refusal(sub=subject, email=None)


async def test_once_linked_the_subject_decides_whatever_the_address_says(scene: Scene) -> None:
    ben = await scene.service.organizer(email="ben@example.com")
    assert await scene.organizer() == scene.ada.id

    for claims in ({"email": "ben@example.com"}, {"email": None}, {"email_verified": False}, {"email": "x@y.example"}):
        assert await scene.organizer(**claims) == scene.ada.id
    assert await scene.organizer(sub="ben", email="ben@example.com") == ben.id
    assert await scene.links() == [("ada", scene.ada.id, "ada@example.com"), ("ben", ben.id, "ben@example.com")]


async def test_the_same_subject_of_another_issuer_is_somebody_else(scene: Scene) -> None:
    ben = await scene.service.organizer()
    await scene.link(ben.slug, "ada", issuer="https://else.example")

    assert await scene.organizer() == scene.ada.id


async def test_calls_that_come_first_all_at_once_make_one_link(scene: Scene) -> None:
    async with running(scene.service.database.settings) as other:
        tokens = [scene.token(jti=str(number)) for number in range(10)]
        agents = [Agent(process.app, token) for token in tokens for process in (scene.service, other)]
        answers = await asyncio.gather(*(agent.call("list_organizers") for agent in agents))

    assert {answer["structuredContent"]["data"][0]["id"] for answer in answers} == {scene.ada.id}
    assert await scene.links() == [("ada", scene.ada.id, "ada@example.com")]


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


# A second subject


async def test_an_address_links_the_first_subject_alone(scene: Scene) -> None:
    assert await scene.organizer() == scene.ada.id

    refusal = await scene.refusal(sub="social|ada")  # as another way to sign in at the same server would have it
    assert refusal["error"].endswith("has another subject of this authorization server.")
    assert refusal["hint"] == "Sign in there as you did before, or ask the operator to link it."
    assert await scene.organizer() == scene.ada.id
    assert await scene.links() == [("ada", scene.ada.id, "ada@example.com")]


async def test_of_subjects_that_come_at_once_with_one_address_one_is_linked(scene: Scene) -> None:
    names = [f"ada {number}" for number in range(10)] * 2
    async with running(scene.service.database.settings) as other:
        apps = [scene.service.app] * 10 + [other.app] * 10
        agents = [Agent(app, scene.token(sub=name)) for app, name in zip(apps, names, strict=True)]
        answers = await asyncio.gather(*(agent.ask("tools/list") for agent in agents))

    [(linked, user_id, _)] = await scene.links()
    assert user_id == scene.ada.id
    assert {answer.status_code for answer in answers} == {200, 403}
    assert [name for name, answer in zip(names, answers, strict=True) if answer.status_code == 200] == [linked] * 2


async def test_an_organizer_the_operator_linked_is_not_linked_by_address_as_well(scene: Scene) -> None:
    await scene.link(scene.ada.slug, "ada's desk")

    await scene.refusal()
    assert await scene.organizer(sub="ada's desk", email=None) == scene.ada.id
    assert await scene.links() == [("ada's desk", scene.ada.id, None)]


async def test_a_subject_of_another_issuer_is_in_nobodys_way(scene: Scene) -> None:
    await scene.link(scene.ada.slug, "ada", issuer="https://else.example")

    assert await scene.organizer() == scene.ada.id


async def test_the_operator_links_any_number(scene: Scene) -> None:
    await scene.organizer()
    for number in range(3):
        await scene.link(scene.ada.slug, f"ada {number}")
        assert await scene.organizer(sub=f"ada {number}") == scene.ada.id

    assert await scene.organizer() == scene.ada.id


# By hand


async def test_the_operators_link_is_heard_of_at_once(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keys, "TTL", 3600.0)  # so that only the announcement can be what ends it
    ben = await scene.service.organizer()
    for _ in range(2):
        assert await scene.organizer() == scene.ada.id

    await scene.link(ben.slug, "ada", move=True)

    assert await scene.organizer() == ben.id
    assert await scene.links() == [("ada", ben.id, None)]


async def test_a_linked_subject_moves_only_when_told_to(scene: Scene) -> None:
    ben = await scene.service.organizer()
    await scene.link(scene.ada.slug, "ann")

    with pytest.raises(Problem) as refused:
        await scene.link(ben.slug, "ann")
    assert refused.value.extra["errors"] == {"subject": [f"is linked to {scene.ada.slug}; --move takes it from there"]}
    assert await scene.links() == [("ann", scene.ada.id, None)]

    await scene.link(ben.slug, "ann", move=True)
    assert await scene.links() == [("ann", ben.id, None)]


async def test_only_organizers_are_linked_to(scene: Scene) -> None:
    await scene.service.run_sql(
        "insert into users (public_id, email, slug, role) values ('aaaaaaaa', 'root@example.com', 'root-root', 'admin')"
    )

    for slug in ("nobody", "root-root"):
        for attempt in (scene.link(slug, "ann"), scene.subjects(slug)):
            with pytest.raises(Problem, match=f"No organizer has the slug {slug}"):
                await attempt
    assert await scene.links() == []


async def test_an_unlinked_subject_acts_for_nobody_at_once(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keys, "TTL", 3600.0)
    for _ in range(2):
        assert await scene.organizer() == scene.ada.id

    assert await scene.unlink("ada") == scene.ada.slug

    refusal = await scene.refusal()
    assert refusal["error"] == "The access token is of 'ada', who acts for no organizer any more."
    assert refusal["hint"] == "Ask the operator to link it to one."


async def test_an_unlinked_subject_is_not_linked_again_by_an_address(scene: Scene) -> None:
    await scene.service.organizer(email="ben@example.com")
    await scene.organizer()
    await scene.unlink("ada")

    for email in (scene.email, "ben@example.com", "new@example.com"):
        await scene.refusal(email=email)
    assert await scene.links() == [("ada", None, None)]
    assert await scene.subjects(scene.ada.slug) == []
    # Its organizer has none now, so that the right one may come, with the address or by the operator.
    assert await scene.organizer(sub="ada again") == scene.ada.id
    await scene.link(scene.ada.slug, "ada")
    assert await scene.organizer() == scene.ada.id


async def test_what_is_not_linked_cannot_be_unlinked(scene: Scene) -> None:
    await scene.link(scene.ada.slug, "ann", issuer="https://else.example")
    await scene.organizer()
    await scene.unlink("ada")

    for subject in ("ada", "ann", "nobody"):
        with pytest.raises(Problem, match=f"{subject} of {scene.server.issuer} is not linked."):
            await scene.unlink(subject)
    assert await scene.links() == [("ada", None, None), ("ann", scene.ada.id, None)]


async def test_an_operator_sees_who_acts_for_an_organizer(scene: Scene) -> None:
    ben = await scene.service.organizer()
    await scene.organizer()
    await scene.link(scene.ada.slug, "ann", issuer="https://else.example")
    await scene.link(ben.slug, "ben")
    before = await scene.service.run_sql("select now()")

    seen = await scene.subjects(scene.ada.slug)

    assert [(each.issuer, each.subject, each.email) for each in seen] == [
        (scene.server.issuer, "ada", "ada@example.com"),
        ("https://else.example", "ann", None),
    ]
    assert seen[0].since < seen[1].since < before[0][0]


# Never


@pytest.mark.parametrize(
    "change",
    ["subject = 'eve'", "issuer = 'https://else.example'", "hash = sha256('x')", "user_id = null", "subject = ''"],
)
async def test_the_database_keeps_a_link_whole(scene: Scene, change: LiteralString) -> None:
    await scene.organizer()

    with pytest.raises(psycopg.errors.CheckViolation):
        await scene.service.run_sql(f"update oauth_subjects set {change}")


async def test_the_database_lets_an_address_make_one_link(scene: Scene) -> None:
    await scene.organizer()

    with pytest.raises(psycopg.errors.UniqueViolation):
        await scene.service.run_sql(
            "insert into oauth_subjects (hash, issuer, subject, user_id, email)"
            " select sha256(convert_to(issuer || e'\\n' || 'eve', 'UTF8')), issuer, 'eve', user_id, email"
            "   from oauth_subjects"
        )


subjects, addresses = st.sampled_from(["sub 1", "sub 2", "sub 3"]), st.sampled_from(["ada", "ben"])
steps = st.one_of(
    st.tuples(st.just("token"), subjects, addresses),
    st.tuples(st.sampled_from(["link", "move"]), subjects, addresses),
    st.tuples(st.just("unlink"), subjects, st.none()),
)


@hypothesis(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=40)
@given(story=st.lists(steps, max_size=12))
async def test_whatever_happens_an_address_takes_nothing_over(scene: Scene, story: list[tuple[str, str, Any]]) -> None:
    names = {"ada": scene.ada}
    names["ben"] = await scene.service.organizer()
    emails = {"ada": scene.email, "ben": f"{names['ben'].slug.replace('-', '')}@example.com"}
    await scene.service.run_sql("delete from oauth_subjects")
    expected: dict[str, str | None] = {}

    for verb, subject, name in story:
        refused: str | None = None
        try:
            if verb == "token":
                id = await scene.by_email(subject, emails[name])
                assert id == names[str(expected.get(subject, name))].id
            elif verb == "unlink":
                await scene.unlink(subject)
            else:
                await scene.link(names[name].slug, subject, move=verb == "move")
        except Problem as problem:
            refused = problem.code
        linked = expected.get(subject)
        match verb:
            case "token" if subject not in expected and name not in expected.values():
                assert refused is None
                expected[subject] = name
            case "token":
                assert refused == (None if linked else "forbidden")
            case "unlink" if linked:
                assert refused is None
                expected[subject] = None
            case "unlink":
                assert refused == "not_found"
            case "link" if linked not in (None, name):
                assert refused == "validation_failed"
            case _:
                assert refused is None
                expected[subject] = name
        found = {subject: user_id for subject, user_id, _ in await scene.links()}
        assert found == {each: whose and names[whose].id for each, whose in expected.items()}
