"""Fixtures of the tests of photos: a site that has pictures, and every kind of store."""

import itertools
import os
import shutil
import subprocess
import sys
import threading
from collections import deque
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from holdfast.events.settings import Settings
from tests.events.photos.site import PhotoSite, site_of
from tests.helpers.events_service import Service

ACCESS_KEY, SECRET_KEY = "holdfast", "correct horse"

_numbers = itertools.count(1)


@pytest.fixture
async def site(service: Service) -> AsyncIterator[PhotoSite]:
    """A site outside, whose pictures the service may download though it is not public."""
    async with site_of(service) as site:
        yield site


class S3(NamedTuple):
    """A server: its address, and the directory whose folders are its buckets, `photos-1` and so on."""

    url: str
    directory: Path


@pytest.fixture(scope="session")
def s3(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3]:
    """An S3-compatible server that checks signatures."""
    rclone = shutil.which("rclone", path=str(Path(sys.executable).parent)) or shutil.which("rclone")
    if not rclone:
        reason = "rclone is not installed"
        pytest.fail(reason) if os.environ.get("CI") else pytest.skip(reason)
    directory = tmp_path_factory.mktemp("s3")
    for number in range(1, 500):
        (directory / f"photos-{number}").mkdir()
    keys = ["--auth-key", f"{ACCESS_KEY},{SECRET_KEY}"]
    options = ["--config", os.devnull, "--addr", "127.0.0.1:0", *keys]
    command = [rclone, "serve", "s3", *options, str(directory)]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr
        # It says so when it listens; a server that cannot start ends its output instead.
        started = next(line for line in process.stderr if "Starting s3 server on" in line)
        reader = threading.Thread(target=deque, args=[process.stderr, 0])
        reader.start()
        yield S3(started.partition("[")[2].partition("/]")[0], directory)
        process.terminate()
        reader.join()


@pytest.fixture
def in_s3(settings: Settings, s3: S3) -> Settings:
    """Settings under which photos are kept in S3, in a bucket of this test's own."""
    bucket = f"photos-{next(_numbers)}"
    s3_settings = {"s3_endpoint_url": s3.url, "s3_access_key_id": ACCESS_KEY, "s3_secret_access_key": SECRET_KEY}
    return settings.model_copy(update={"s3_bucket": bucket, **s3_settings})


@pytest.fixture(params=["disk", "s3"])
def disk_or_s3(request: pytest.FixtureRequest, settings: Settings) -> Settings:
    """Settings under which photos are kept on the disk, and others under which they are kept in S3."""
    return settings if request.param == "disk" else request.getfixturevalue("in_s3")
