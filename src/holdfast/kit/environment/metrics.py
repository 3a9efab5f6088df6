"""Metrics for Prometheus, served at `/metrics`.

With several worker processes each writes its metrics to a shared directory (`PROMETHEUS_MULTIPROC_DIR`, set by
`serve`), and each of them can answer with the metrics of all.
"""

import os
from functools import lru_cache

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
BATCH_SIZE = Histogram(
    "holdfast_batch_calls",
    "Calls that shared one statement.",
    ["batch"],
    buckets=(1, 2, 5, 10, 25, 50, 100, 250, 500, 1000),
)

CONTENT_TYPE = CONTENT_TYPE_LATEST


@lru_cache(8192)
def counter(metric: Counter, *labels: str | int) -> Counter:
    """The counter with these labels."""
    return metric.labels(*labels)


def start_at_zero(metric: Counter, *labels: str) -> None:
    """Expose a counter with the value 0 before its first increase.

    Prometheus sees no increase in a counter whose first value is 1, so no alarm would be raised.
    """
    metric.labels(*labels)


def exposition() -> bytes:
    """Every metric of the service, in the Prometheus text format."""
    if "PROMETHEUS_MULTIPROC_DIR" not in os.environ:
        return generate_latest(REGISTRY)
    registry = CollectorRegistry()
    multiprocess.MultiProcessCollector(registry)
    return generate_latest(registry)
