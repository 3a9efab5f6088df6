"""Observing many amounts at once is the same as observing each."""

from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry, Histogram, generate_latest

from holdfast.kit.compat.prometheus_histogram import observe_all

amounts = st.sampled_from([0.0, 0.5, 1.0, 1.5, 2.0, 1e9])


@given(st.lists(amounts))
def test_amounts_observed_together_give_the_metrics_of_single_observations(observed: list[float]) -> None:
    registries = [CollectorRegistry(), CollectorRegistry()]
    single, together = (Histogram("seconds", "Time.", buckets=(1, 2), registry=registry) for registry in registries)

    for amount in observed:
        single.observe(amount)
    observe_all(together, observed)

    one, other = (_samples(generate_latest(registry)) for registry in registries)
    assert one == other


def _samples(exposition: bytes) -> list[str]:
    return [line for line in exposition.decode().splitlines() if "_created" not in line]
