"""The pages of an event and of a registration, before the draw and after it, with how to check it."""

import html
import json
import re
from pathlib import Path

import pytest

from tests.events.draws.draw_steps import PEOPLE, ROUND
from tests.events.draws.event_scene import EventDraw, opening_event
from tests.helpers.events_service import Service
from tests.helpers.node import node


async def page(draw: EventDraw, path: str, language: str = "en") -> str:
    answer = await draw.service.http.get(f"{path}?lang={language}")
    assert answer.status_code == 200, answer.text
    return html.unescape(answer.text).replace("\N{NON-BREAKING HYPHEN}", "-")


async def sign_up(draw: EventDraw, name: str) -> str:
    """Send the form of the event; the path of the page with the outcome."""
    form = f"/events/{draw.event['id']}/embed"
    token = re.search(r'name="token" value="([^"]+)"', (await draw.service.http.get(form)).text)
    assert token
    fields = {"token": token[1], "email": f"{name}@example.com", "name": "", "website": ""}
    sent = await draw.service.http.post(form, data=fields, headers={"sec-fetch-site": "same-origin"})
    assert sent.status_code == 303, sent.text
    await draw.service.settle()
    return sent.headers["location"].partition("?")[0]


async def test_the_pages_say_before_the_draw_what_is_drawn_and_then_how_to_check_it(
    service: Service, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    async with opening_event(service, monkeypatch, capacity=2) as draw:
        public = draw.event["public_url"].removeprefix("http://events.test")
        outcome = await sign_up(draw, "own")
        await draw.enter(*PEOPLE)

        before, form = await page(draw, public), await page(draw, f"/events/{draw.event['id']}/embed")
        for text in (before, form):
            assert "You can enter until" in text
            assert "Enter the draw" in text
            assert "Each e-mail address is one entry." in text
            assert f"The order is drawn by round {ROUND} of the public beacon drand" in text
        assert "8 entries so far." in before
        assert "seats left" not in before
        assert "2 Plätze werden verlost." in await page(draw, public, "de")
        waiting = await page(draw, outcome)
        assert "Seats are drawn on" in waiting
        assert "Your entry is number 1 of 8." in waiting
        assert "Save your receipt" in waiting
        assert "Registrations are decided in order of arrival" not in waiting

        await draw.freeze_in_log()
        await service.run_sql("update events set draw_at = now() - interval '1 second'")
        await service.wait_for_notices()
        assert "Entries are closed. The seats are drawn on" in await page(draw, public)
        await draw.draw()
        await draw.give_places()
        await service.wait_for_notices()
        after, order = await page(draw, public), await draw.order()
        assert "The seats were drawn." in after
        assert len(after) < 60_000
        place = order.index(1) + 1
        assert f"Your entry was number 1 of 8. In the draw it came to rank {place}." in await page(draw, outcome)
        script = tmp_path / "check.mjs"
        (snippet,) = re.findall('<code id="program-of-draw">(.*?)</code>', after, re.DOTALL)
        code, _, call = snippet.rpartition("await drawnOrder")
        script.write_text(f"{code}console.log(JSON.stringify(await drawnOrder{call.rstrip().removesuffix(';')}));")
        ran = node(tmp_path, script)
        assert json.loads(ran.stdout) == order, ran.stderr
        assert f'href="/log/events/{draw.event["id"]}/checkpoint"' in after
