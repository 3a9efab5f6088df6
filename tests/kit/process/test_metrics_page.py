"""Metrics are shown to programs on the same machine, or with the token, and to no others."""

import os
import subprocess
from pathlib import Path

import pytest
from prometheus_client.mmap_dict import MmapedDict

from holdfast import __version__
from holdfast.events.settings import Settings
from holdfast.kit.environment import metrics
from tests.helpers.events_service import Service, running_events

TOKEN = "figures-" * 4


@pytest.mark.parametrize(
    ("address", "status"), [("127.0.0.1", 200), ("127.9.9.9", 200), ("::1", 200), ("192.0.2.1", 403), ("::2", 403)]
)
async def test_metrics_without_a_token_are_shown_to_the_same_machine_only(
    service: Service, address: str, status: int
) -> None:
    async with service.client_at(address) as client:
        answer = await client.get("/metrics")

    assert answer.status_code == status
    assert (f'holdfast_build_info{{version="{__version__}"}} 1.0' in answer.text) == (status == 200)
    assert ("holdfast_requests" in answer.text) == (status == 200)


@pytest.mark.parametrize("header", ["Forwarded", "Via", "X-Forwarded-For", "X-Forwarded-Proto", "X-Real-IP"])
async def test_a_request_for_metrics_through_a_proxy_on_the_same_machine_is_refused(
    service: Service, header: str
) -> None:
    answer = await service.http.get("/metrics", headers={header: "127.0.0.1"})

    assert answer.status_code == 403
    assert "METRICS_TOKEN" in answer.text


def test_metrics_of_work_in_progress_of_a_killed_worker_are_left_out(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    ended = subprocess.Popen(["true"])
    ended.wait()
    pids = ended.pid, os.getpid()
    for name in (*(f"gauge_livesum_{pid}" for pid in pids), f"counter_{ended.pid}"):
        MmapedDict(str(tmp_path / f"{name}.db")).close()
    monkeypatch.setenv("PROMETHEUS_MULTIPROC_DIR", str(tmp_path))

    metrics.exposition()

    assert {file.name for file in tmp_path.iterdir()} == {f"gauge_livesum_{pids[1]}.db", f"counter_{pids[0]}.db"}


async def test_metrics_with_a_token_are_shown_to_its_holder_only(settings: Settings) -> None:
    guarded = settings.model_copy(update={"metrics_token": TOKEN})
    async with running_events(guarded) as service, service.client_at("192.0.2.1") as client:
        figures = await client.get("/metrics", headers={"Authorization": f"Bearer {TOKEN}"})
        refusals = [
            await http.get("/metrics", headers=headers)
            for http in (client, service.http)
            for headers in ({}, {"Authorization": f"Bearer {TOKEN}x"}, {"Authorization": TOKEN})
        ]

    assert "holdfast_requests" in figures.text
    assert {(response.status_code, response.headers["www-authenticate"]) for response in refusals} == {(401, "Bearer")}
