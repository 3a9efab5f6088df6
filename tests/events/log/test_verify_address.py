"""`holdfast verify` reads the log of a running service from its address alone."""

import asyncio
from pathlib import Path

from holdfast.events.settings import Settings
from tests.events.log.scene import open_log
from tests.events.log.test_frauds import rules, verify
from tests.serving import listener, running_already, serving
from tests.support import running


async def test_a_log_is_verified_over_http_and_again_when_it_has_grown(settings: Settings, tmp_path: Path) -> None:
    at = listener()
    url = f"http://127.0.0.1:{at.getsockname()[1]}"
    async with (
        running(settings.model_copy(update={"base_url": url})) as service,
        serving(running_already(service.app), at),
    ):
        log = await open_log(service, seal=True)
        address, head = f"{url}{log.path}", tmp_path / "head"
        code, report = await asyncio.to_thread(verify, f"{address}/checkpoint", "--head", head)
        assert (code, report["findings"], report["subject"]) == (0, [], f"Log {address}")

        await log.arrive(600)
        await log.seal()
        _, report = await asyncio.to_thread(verify, address, "--head", head)
        missing, error = await asyncio.to_thread(verify, f"{url}/log/events/999999")

    # The rows of the scene are from another day, and seat more people than there are seats; the hashes are right.
    assert {"late", "outcome"} == rules(report)
    assert report["figures"]["arrivals"] == {"registered": 600}
    assert head.read_text().splitlines()[1] == "603"
    assert (missing, "is answered with 404" in error["error"]) == (2, True)
