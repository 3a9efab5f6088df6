"""An address never takes over the organizer of another subject: the database refuses it too."""

from typing import Any, LiteralString

import psycopg
import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as hypothesis
from hypothesis import strategies as st

from holdfast.kit.contract.problems import Problem
from tests.events.oauth.oauth_scene import OAuthScene


@pytest.mark.parametrize(
    "change",
    ["subject = 'eve'", "issuer = 'https://else.example'", "hash = sha256('x')", "user_id = null", "subject = ''"],
)
async def test_the_database_refuses_a_change_of_the_subject_or_issuer_of_a_link(
    scene: OAuthScene, change: LiteralString
) -> None:
    await scene.organizer()

    with pytest.raises(psycopg.errors.CheckViolation):
        await scene.service.run_sql(f"update oauth_subjects set {change}")


async def test_the_database_refuses_a_second_link_by_address(scene: OAuthScene) -> None:
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


@hypothesis(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=20)
@given(story=st.lists(steps, max_size=12))
async def test_an_address_never_takes_over_the_organizer_of_another_subject(
    scene: OAuthScene, story: list[tuple[str, str, Any]]
) -> None:
    names = {"ada": scene.ada}
    names["ben"] = await scene.service.organizer()
    emails = {"ada": scene.email, "ben": f"{names['ben'].slug.replace('-', '')}@example.com"}
    await scene.service.run_sql("delete from oauth_subjects")
    expected: dict[str, str | None] = {}

    for verb, subject, name in story:
        refusal: str | None = None
        try:
            if verb == "token":
                id = await scene.by_email(subject, emails[name])
                assert id == names[str(expected.get(subject, name))].id
            elif verb == "unlink":
                await scene.unlink(subject)
            else:
                await scene.link(names[name].slug, subject, move=verb == "move")
        except Problem as problem:
            refusal = problem.code
        linked = expected.get(subject)
        match verb:
            case "token" if subject not in expected and name not in expected.values():
                assert refusal is None
                expected[subject] = name
            case "token":
                assert refusal == (None if linked else "forbidden")
            case "unlink" if linked:
                assert refusal is None
                expected[subject] = None
            case "unlink":
                assert refusal == "not_found"
            case "link" if linked not in (None, name):
                assert refusal == "validation_failed"
            case _:
                assert refusal is None
                expected[subject] = name
        owners = {subject: user_id for subject, user_id, _ in await scene.links()}
        assert owners == {subject: whose and names[whose].id for subject, whose in expected.items()}
