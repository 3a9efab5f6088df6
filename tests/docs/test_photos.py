"""The lines of the page on photos work as printed, after those of the first requests that lead there."""

import asyncio
import os
import re
import shutil
import sys
from pathlib import Path

import pytest

from holdfast.events.settings import Settings
from tests.events.photos.site import site_of
from tests.helpers.events_service import running_events
from tests.helpers.pictures import picture
from tests.helpers.serving import bind_port, serve_app

ROOT = Path(__file__).parents[2]
FROM_THE_WEB = "https://www.python.org/static/img/python-logo.png"


def commands(page: str, heading: str = "") -> str:
    """The shell lines of a page, or of one section of it."""
    text = (ROOT / page).read_text(encoding="utf-8")
    section = text.split(f"\n## {heading}\n")[1].split("\n## ")[0] if heading else text
    return "\n".join(re.findall(r"```sh\n(.*?)```", section, re.DOTALL))


@pytest.mark.skipif(shutil.which("curl") is None and "CI" not in os.environ, reason="needs curl")
async def test_a_photo_comes_both_ways_by_the_pages_own_lines(settings: Settings, tmp_path: Path) -> None:
    port = bind_port()
    served = f"127.0.0.1:{port.getsockname()[1]}"
    async with (
        running_events(settings.model_copy(update={"base_url": f"http://{served}"})) as service,
        site_of(service) as site,
        serve_app(service.app, port),
    ):
        begin = commands("docs/first-requests.md", "A first registration").split('curl -s "$EVENTS/api/registrations"')[
            0
        ]
        lines = f"{begin}\n{commands('docs/events/photos.md')}"
        lines = lines.replace("$(.venv/bin/holdfast events address)", f"http://{served}")
        lines = lines.replace(FROM_THE_WEB, site.publish("/logo.png", picture("image/png"), "image/png"))
        ran = await asyncio.create_subprocess_exec(
            *("bash", "-euo", "pipefail", "-c", lines),
            cwd=tmp_path,
            env={**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"},
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        output, complained = await ran.communicate()

        assert complained == b""
        assert ran.returncode == 0
        patched, added, primary, removed = [line for line in output.decode().split('{"data":') if line]
        assert f'"primary_image_url":"http://{served}/media/photos/' in patched
        assert f'"image_urls":["http://{served}/media/photos/' in added
        keys = [re.search(r'"image_keys":(\[.*?\])', answer) for answer in (added, primary, removed)]
        both, turned, left = [str(key and key[1]).strip("[]").split(",") for key in keys]
        assert turned == both[::-1]
        assert left == turned[:1]
        assert await service.run_sql("select state::text, idle_since is null from photos order by idle_since") == [
            ("accepted", False),
            ("accepted", True),
        ]
