"""Operators see which apps act for an organizer, and disconnect them, on the command line."""

import re

from tests.events.oauth_server.oauth_server_scene import OAuthServerScene
from tests.helpers.command_line import run_holdfast


async def test_an_app_is_listed_and_disconnected(scene: OAuthServerScene) -> None:
    tokens = await scene.connect_app(scope="read_events")
    named = await scene.register(client_name="\x1b[31mred\tapp")
    await scene.person.allow(named.query())
    url = scene.service.database.url

    def says(*words: str, status: int = 0) -> str:
        done = run_holdfast("events", "app", *words, EVENTS_DATABASE_URL=url)
        assert done.returncode == status, done.stdout + done.stderr
        return done.stderr if status else done.stdout

    moment = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ"
    seen = says("list", scene.ada.slug)
    assert re.fullmatch(rf"{scene.app.id}\tExample App\tread_events\t{moment}\t{moment}\n", seen)

    assert says("disconnect", scene.ada.slug, scene.app.id) == f"{scene.app.id} acts for {scene.ada.slug} no more.\n"
    assert not await scene.works(tokens)
    assert says("list", scene.ada.slug) == ""
    assert says("disconnect", scene.ada.slug, scene.app.id, status=1).startswith("No such client acts for you.")
    assert says("list", "nobody", status=1).startswith("No organizer has the slug nobody.")
