"""Adds many observations to a histogram of prometheus_client at once. Written for prometheus_client 0.26.

`Histogram.observe` takes two locks and looks through the buckets for each observation. With several processes it also
writes to a file. A histogram has no method for many observations.
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
