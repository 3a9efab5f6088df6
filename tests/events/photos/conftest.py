"""Fixtures of the tests of photos: a site that has pictures, and every kind of store."""

import os
import shutil
import subprocess
import sys
import threading
from collections import deque
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from holdfast.events.settings import Settings
from tests.events.photos.site import Site, site_of
from tests.support import Service

ACCESS_KEY, SECRET_KEY = "holdfast", "correct horse"


@pytest.fixture
async def site(service: Service) -> AsyncIterator[Site]:
    """A site outside, whose pictures the service may download though it is not public."""
    async with site_of(service) as site:
        yield site


@pytest.fixture(scope="session")
def s3_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """An S3-compatible server that checks signatures, with a bucket `photos`."""
    rclone = shutil.which("rclone", path=str(Path(sys.executable).parent)) or shutil.which("rclone")
    if not rclone:
        reason = "rclone is not installed"
        pytest.fail(reason) if os.environ.get("CI") else pytest.skip(reason)
    directory = tmp_path_factory.mktemp("s3")
    (directory / "photos").mkdir()
    keys = ["--auth-key", f"{ACCESS_KEY},{SECRET_KEY}"]
    command = [rclone, "serve", "s3", "--config", os.devnull, "--addr", "127.0.0.1:0", *keys, str(directory)]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr
        # It says so when it listens; a server that cannot start ends its output instead.
        started = next(line for line in process.stderr if "Starting s3 server on" in line)
        reader = threading.Thread(target=deque, args=[process.stderr, 0])
        reader.start()
        yield started.partition("[")[2].partition("/]")[0]
        process.terminate()
        reader.join()


@pytest.fixture
def in_s3(settings: Settings, s3_url: str) -> Settings:
    """Settings under which photos are kept in S3."""
    kept = {"s3_endpoint_url": s3_url, "s3_access_key_id": ACCESS_KEY, "s3_secret_access_key": SECRET_KEY}
    return settings.model_copy(update={"s3_bucket": "photos", **kept})


@pytest.fixture(params=["disk", "s3"])
def anywhere(request: pytest.FixtureRequest, settings: Settings) -> Settings:
    """Settings under which photos are kept on the disk, and others under which they are kept in S3."""
    return settings if request.param == "disk" else request.getfixturevalue("in_s3")
