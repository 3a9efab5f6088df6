"""Metrics for Prometheus, served at `/metrics`.

With several worker processes each writes its metrics to a shared directory (`PROMETHEUS_MULTIPROC_DIR`, set by
`serve`), and each of them can answer with the metrics of all.
"""

import asyncio
import atexit
import os
from collections import Counter as Tally
from functools import cached_property, lru_cache
from pathlib import Path

import psutil
from prometheus_client import (
    CONTENT_TYPE_LATEST,
    REGISTRY,
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    generate_latest,
    multiprocess,
)

from holdfast import __version__
from holdfast.kit.compat.prometheus_histogram import observe_all

FAST = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10)

REQUESTS = Counter("holdfast_requests", "Requests answered.", ["operation", "status"])
REQUEST_SECONDS = Histogram("holdfast_request_seconds", "Time from request to answer.", ["operation"], buckets=FAST)
REFUSALS = Counter("holdfast_refusals", "Problems that operations answered with.", ["operation", "code"])
RATE_LIMIT_FAILURES = Counter(
    "holdfast_rate_limit_storage_failures", "Times that the storage of rate limits did not answer."
)
JOBS = Counter("holdfast_jobs", "Jobs that ended, or failed and will be tried again.", ["task", "outcome"])
BUILD = Gauge("holdfast_build_info", "The version of the program; 1.", ["version"], multiprocess_mode="max")
BUILD.labels(__version__).set(1)
BATCH_SIZES = Histogram(
    "holdfast_batch_calls",
    "Calls that shared one statement.",
    ["batch"],
    buckets=(1, 2, 5, 10, 25, 50, 100, 250, 500, 1000),
)

CONTENT_TYPE = CONTENT_TYPE_LATEST

WRITE_SECONDS = 1
"""Seconds after which a request is in the metrics at the latest."""

MAX_UNWRITTEN = 1_000
"""Requests of one operation that are counted before they are written."""


@lru_cache(8192)
def counter(metric: Counter, *labels: str | int) -> Counter:
    """The counter with these labels."""
    return metric.labels(*labels)


class RequestMetrics:
    """The metrics of the requests of one operation.

    They are written once a second, before they are read, and when the process ends. To write them for each request
    costs as much as to look up its API key.
    """

    def __init__(self, operation: str) -> None:
        self._operation = operation
        self._seconds: list[float] = []
        self._statuses: list[int] = []

    @cached_property
    def _histogram(self) -> Histogram:
        return REQUEST_SECONDS.labels(self._operation)

    def add(self, status: int, seconds: float) -> None:
        """Count a request, by the status and the seconds of its answer."""
        self._seconds.append(seconds)
        self._statuses.append(status)
        if len(self._seconds) == 1:
            _unwritten.append(self)
            asyncio.get_running_loop().call_later(WRITE_SECONDS, self.write)
        elif len(self._seconds) == MAX_UNWRITTEN:
            self.write()

    def write(self) -> None:
        """Write the requests that were counted since the last time."""
        seconds, statuses = self._seconds, self._statuses
        self._seconds, self._statuses = [], []
        if seconds:
            _unwritten.remove(self)
            observe_all(self._histogram, seconds)
            for status, count in Tally(statuses).items():
                counter(REQUESTS, self._operation, status).inc(count)


_unwritten: list[RequestMetrics] = []
"""The metrics with requests that are not written yet."""


def start_at_zero(metric: Counter, *labels: str) -> None:
    """Expose a counter with the value 0 before its first increase.

    Prometheus sees no increase in a counter whose first value is 1, so no alarm would be raised.
    """
    metric.labels(*labels)


@atexit.register
def write_requests() -> None:
    """Write the requests of this process that were counted and not written yet."""
    for metrics in tuple(_unwritten):
        metrics.write()


def _forget_ended_processes(directory: Path) -> None:
    """Remove what a process that was killed counted as going on in it, such as open streams."""
    for file in directory.glob("gauge_live*_*.db"):
        pid = int(file.stem.rpartition("_")[2])
        if not psutil.pid_exists(pid):
            file.unlink(missing_ok=True)  # another worker may have removed it


def exposition() -> bytes:
    """Every metric of the service, in the Prometheus text format."""
    write_requests()
    if "PROMETHEUS_MULTIPROC_DIR" not in os.environ:
        return generate_latest(REGISTRY)
    _forget_ended_processes(Path(os.environ["PROMETHEUS_MULTIPROC_DIR"]))
    registry = CollectorRegistry()
    multiprocess.MultiProcessCollector(registry)
    return generate_latest(registry)
