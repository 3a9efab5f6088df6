"""The operator links subjects to organizers, moves and unlinks them, with effect at once."""

import pytest

from holdfast.kit.contract.problems import Problem
from tests.events.oauth.oauth_scene import OAuthScene


@pytest.mark.usefixtures("only_notices_end_caches")
async def test_a_link_made_by_the_operator_applies_at_once(scene: OAuthScene) -> None:
    ben = await scene.service.organizer()
    for _ in range(2):
        assert await scene.organizer() == scene.ada.id

    await scene.link(ben.slug, "ada", move=True)

    assert await scene.organizer() == ben.id
    assert await scene.links() == [("ada", ben.id, None)]


async def test_a_linked_subject_is_moved_only_with_the_option_to_move(scene: OAuthScene) -> None:
    ben = await scene.service.organizer()
    await scene.link(scene.ada.slug, "ann")

    with pytest.raises(Problem) as refusal:
        await scene.link(ben.slug, "ann")
    assert refusal.value.extra["errors"] == {"subject": [f"is linked to {scene.ada.slug}; --move takes it from there"]}
    assert await scene.links() == [("ann", scene.ada.id, None)]

    await scene.link(ben.slug, "ann", move=True)
    assert await scene.links() == [("ann", ben.id, None)]


async def test_a_subject_can_be_linked_to_organizers_only(scene: OAuthScene) -> None:
    await scene.service.run_sql(
        "insert into users (public_id, email, slug, role) values ('aaaaaaaa', 'root@example.com', 'root-root', 'admin')"
    )

    for slug in ("nobody", "root-root"):
        for attempt in (scene.link(slug, "ann"), scene.subjects(slug)):
            with pytest.raises(Problem, match=f"No organizer has the slug {slug}"):
                await attempt
    assert await scene.links() == []


@pytest.mark.usefixtures("only_notices_end_caches")
async def test_an_unlinked_subject_loses_its_rights_at_once(scene: OAuthScene) -> None:
    for _ in range(2):
        assert await scene.organizer() == scene.ada.id

    assert await scene.unlink("ada") == scene.ada.slug

    refusal = await scene.refusal()
    assert refusal["error"] == "The access token is of 'ada', who acts for no organizer any more."
    assert refusal["hint"] == "Ask the operator to link it to one."


async def test_an_unlinked_subject_is_not_linked_again_by_an_address(scene: OAuthScene) -> None:
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


async def test_a_subject_that_is_not_linked_cannot_be_unlinked(scene: OAuthScene) -> None:
    await scene.link(scene.ada.slug, "ann", issuer="https://else.example")
    await scene.organizer()
    await scene.unlink("ada")

    for subject in ("ada", "ann", "nobody"):
        with pytest.raises(Problem, match=f"{subject} of {scene.server.issuer} is not linked."):
            await scene.unlink(subject)
    assert await scene.links() == [("ada", None, None), ("ann", scene.ada.id, None)]


async def test_an_operator_sees_who_acts_for_an_organizer(scene: OAuthScene) -> None:
    ben = await scene.service.organizer()
    await scene.organizer()
    await scene.link(scene.ada.slug, "ann", issuer="https://else.example")
    await scene.link(ben.slug, "ben")
    before = await scene.service.run_sql("select now()")

    seen = await scene.subjects(scene.ada.slug)

    assert [(link.issuer, link.subject, link.email) for link in seen] == [
        (scene.server.issuer, "ada", "ada@example.com"),
        ("https://else.example", "ann", None),
    ]
    assert seen[0].since < seen[1].since < before[0][0]
