"""How often one address may try to install, or to open a session."""

from holdfast.inventory.settings import Settings
from tests.helpers.platform_shop import DOMAIN, open_platform_scene


async def test_an_address_that_installs_too_often_is_answered_with_429_and_the_time_to_wait(settings: Settings) -> None:
    async with open_platform_scene(settings.model_copy(update={"installs_per_minute": 2})) as scene:
        answers = [await scene.begin() for _ in range(3)]
        session = await scene.inventory.http.post("/auth/session")

    assert [answer.status_code for answer in answers] == [302, 302, 429]
    assert "There were too many attempts" in answers[-1].text
    assert DOMAIN not in answers[-1].text
    assert 1 <= int(answers[-1].headers["retry-after"]) <= 60
    assert (session.status_code, session.json()["error"]) == (429, "rate_limited")
    assert 1 <= int(session.headers["retry-after"]) <= 60
