"""The page of a waiting room with a draw: before it, after it, in both languages, and how to check it."""

import html
import json
import re
from pathlib import Path

import pytest

from holdfast_verify.formats.drawn_order import draw_order
from tests.events.draws.draw_steps import PEOPLE
from tests.events.queues.draw_scene import ROUND, drawing_queue
from tests.helpers.events_service import Service
from tests.helpers.node import node


async def test_the_page_of_a_queue_says_what_is_drawn_and_then_how_to_check_it(
    service: Service, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    async with drawing_queue(service, monkeypatch) as draw:
        path = f"/queues/{draw.queue.id}"
        await draw.queue.join(*PEOPLE)
        secret = re.search(r"waiting_room_\d+=([^;]+)", (await service.http.get(path)).headers["set-cookie"])
        assert secret
        cookie = {"cookie": f"waiting_room_{draw.queue.id}={secret[1]}"}

        async def page(language: str = "en", address: str = path) -> str:
            answer = await service.http.get(f"{address}?lang={language}", headers=cookie)
            assert answer.status_code == 200, answer.text
            return html.unescape(answer.text)

        before = await page()
        assert "You are in the draw." in before
        assert "Entries close on" in before
        assert "Everyone who enters in time has the same chance." in before
        assert "Each browser is one entry, and all entries have the same chance." in before
        assert f"Round {ROUND} of the public beacon drand" in before
        assert '<dd id="entries">8</dd>' in before
        assert "Jeder Browser ist ein Los" in await page("de")
        shared = await page(address=f"{path}/progress")
        assert 'data-draws="1"' in before
        assert 'data-draws="1"' in shared
        assert '<dd id="entries">8</dd>' in shared

        await draw.seal()
        await draw.freeze()
        await service.run_sql("update queues set draw_at = now()")
        assert "The order is drawn on" in await page()
        await draw.seal()
        await draw.draw()
        after = await page()
        ((seed,),) = await service.run_sql("select seed from queue_draws")
        order = draw_order(seed, 8)
        assert f'<strong id="position">{order.index(8) + 1}</strong>' in after
        assert "data-draws" not in after
        script = tmp_path / "check.mjs"
        (snippet,) = re.findall('<code id="program-of-draw">(.*?)</code>', after, re.DOTALL)
        code, _, call = snippet.rpartition("await drawnOrder")
        script.write_text(f"{code}console.log(JSON.stringify(await drawnOrder{call.rstrip().removesuffix(';')}));")
        ran = node(tmp_path, script)
        assert json.loads(ran.stdout) == order, ran.stderr
        assert f'href="/log/queues/{draw.queue.id}/checkpoint"' in after
