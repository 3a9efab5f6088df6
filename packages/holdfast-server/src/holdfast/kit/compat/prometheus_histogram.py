"""Adds many observations to a histogram of prometheus_client at once. Written for prometheus_client 0.26.

`Histogram.observe` takes two locks and looks through the buckets for each observation. With several processes it also
writes to a file. A histogram has no method for many observations
(docs/upstream.md).

It stays while it saves more than 1 % of the processor time of a request: `observe` takes 0.7 us in one process and 2.0
with several, and this 0.15. A read takes 56 us, a registration and a change of stock 110.
"""
# pyright: reportPrivateUsage=false, reportUnknownMemberType=false

from bisect import bisect_left
from collections import Counter
from collections.abc import Sequence

from prometheus_client import Histogram

VERSION = "0.26"


def observe_all(histogram: Histogram, amounts: Sequence[float]) -> None:
    """Observe each of the amounts."""
    bounds = histogram._upper_bounds
    histogram._sum.inc(sum(amounts))
    for index, count in Counter(bisect_left(bounds, amount) for amount in amounts).items():
        histogram._buckets[index].inc(count)
