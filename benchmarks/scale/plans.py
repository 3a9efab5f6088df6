"""The three plans: what a crowd, a Saturday and a Friday need.

Work that is the same for everybody is counted, not simulated: processor seconds and bytes are sums. Waits behind a
resource that serves in order of arrival follow exactly from how many have come and how many were served by each
second. Waits in a process and its database come from the event model, in which one of several like processes has its
share of the load.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

from benchmarks.scale import inputs
from benchmarks.scale.costs import CallCosts, Costs
from benchmarks.scale.engine import Cores, Lock, Simulation
from benchmarks.scale.model import MAX_BATCH, MICRO, Kind, OpenLoop, Primary, Process, percentile

GB = 1e9


class Resource(NamedTuple):
    """Something of which there is a limit.

    demand    in the busiest second
    limit     what one of it does; of what Holdfast has only one, it is all there is
    only_one  whether more of it cannot be had by more machines
    """

    what: str
    unit: str
    demand: float
    limit: float
    only_one: bool

    @property
    def times(self) -> float:
        return self.demand / self.limit


class Wait(NamedTuple):
    """What people wait for, in seconds."""

    what: str
    p50: float
    p99: float


class Bill(NamedTuple):
    """What a plan uses in all. `stored`, `sent`: bytes."""

    core_hours: float
    stored: float
    sent: float
    mails: float

    def dollars(self) -> list[tuple[str, float, float]]:
        """What is paid for, how much of it, and the money."""
        price = inputs.prices()
        amounts = {
            "core for an hour": self.core_hours,
            "GB stored for a month": self.stored / GB,
            "GB to the internet": self.sent / GB,
            "1,000 mails": self.mails / 1000,
        }
        return [(what, amount, amount * price[what].dollars) for what, amount in amounts.items()]


class Plan(NamedTuple):
    """What a plan needs.

    facts        what happens, in words and figures
    resources    with the one that saturates first in front
    processes    of the service
    primaries    that PostgreSQL would need, if its load could be spread
    """

    facts: list[tuple[str, float, str]]
    resources: list[Resource]
    waits: list[Wait]
    service_cores: float
    processes: int
    database_cores: float
    primaries: int
    bill: Bill


def per_call(cost: CallCosts) -> tuple[float, float]:
    """Processor seconds of the service and of PostgreSQL for a call that shares a batch with others."""
    together = inputs.TOGETHER.value
    return (
        (cost.service.call + cost.service.batch / together) * MICRO,
        (cost.database.call + cost.database.batch / together) * MICRO,
    )


def in_a_row(cost: CallCosts) -> float:
    """How many calls a second pass a lock that a batch holds until its commit is confirmed, with full batches."""
    seconds = (cost.database.batch + MAX_BATCH * cost.database.call + cost.wait) * MICRO + inputs.STANDBY.value
    return MAX_BATCH / seconds


def waits_behind(arrivals: Sequence[float], served: float) -> list[tuple[float, float]]:
    """How long each waits who comes in each second, if so many are served a second in order of arrival.

    Returns for each second how many came, and their mean wait.
    """
    waits: list[tuple[float, float]] = []
    before = 0.0
    for came in arrivals:
        after = max(0.0, before + came - served)
        waits.append((came, (before + after) / 2 / served))
        before = after
    return waits


def weighted(waits: Sequence[tuple[float, float]], share: float) -> float:
    """The wait that this share of people does not exceed."""
    total, passed = sum(people for people, _ in waits), 0.0
    for people, wait in sorted(waits, key=lambda one: one[1]):
        passed += people
        if passed >= share * total:
            return wait
    return 0.0


def latency(name: str, cost: CallCosts, cores: float, *, processes: int = 2, locked: bool = False) -> Wait:
    """What a call waits whose processes work for `FULL` of the time. `cores`: those of the primary for each process."""
    seconds = 0.4
    simulation = Simulation()
    primary = Primary(simulation, Cores(simulation, max(1.0, cores * processes)))
    served_by = [Process(simulation, Cores(simulation, 1), primary) for _ in range(processes)]
    kind = Kind(name, cost, lock=Lock() if locked else None, standby=inputs.STANDBY.value if cost.wal else 0)
    per_second = inputs.FULL.value * processes / per_call(cost)[0]
    people = OpenLoop(simulation, served_by, kind, per_second, seconds, way=inputs.WAY.value)
    simulation.run(seconds + 1)
    latencies = people.seen.latencies[name]
    return Wait(name, percentile(latencies, 0.5), percentile(latencies, 0.99))


def _plan(
    costs: Costs,
    busiest: dict[str, float],
    total: dict[str, float],
    facts: list[tuple[str, float, str]],
    resources: list[Resource],
    waits: list[Wait],
    hours: float,
    mails: float = 0,
    more: tuple[float, float, float, float, float] = (0, 0, 0, 0, 0),
    sent: float = 0,
) -> Plan:
    """Sum up a plan.

    busiest   calls in the busiest second, by kind
    total     calls in all, by kind
    hours     how long machines are rented for the busiest second
    more      cores of the service and of PostgreSQL, bytes a second of the log, bytes stored, in the busiest second
              but for what is stored; memory in bytes
    """
    spent = {name: per_call(costs.calls[name]) for name in busiest}
    service = sum(count * spent[name][0] for name, count in busiest.items()) + more[0]
    database = sum(count * spent[name][1] for name, count in busiest.items()) + more[1]
    log = sum(count * costs.calls[name].wal for name, count in busiest.items()) + more[2]
    stored = sum(count * costs.calls[name].stored for name, count in total.items()) + more[3]
    out = sum(count * costs.calls[name].received for name, count in total.items()) + sent
    processes = math.ceil(service / inputs.FULL.value)
    one_primary = inputs.PRIMARY_CORES.value * inputs.FULL.value
    resources = [
        *resources,
        Resource("processor of one primary", "cores", database, one_primary, only_one=True),
        Resource("log of one primary", "MB a second", log / 1e6, inputs.LOG_BYTES.value / 1e6, only_one=True),
        Resource("one process of the service", "cores", service, inputs.FULL.value, only_one=False),
    ]
    # What more machines do not help comes first.
    resources.sort(key=lambda one: (not one.only_one, -one.times))
    primaries = max(1, math.ceil(max(database / one_primary, log / inputs.LOG_BYTES.value)))
    core_hours = (processes + primaries * inputs.PRIMARY_CORES.value * 2) * hours  # each primary has a standby
    bill = Bill(core_hours, stored, out, mails)
    return Plan(facts, resources, waits, service, processes, database, primaries, bill)


def crowd(costs: Costs) -> Plan:
    """One event that so many people want within minutes, with a waiting room in front."""
    calls, single = costs.calls, costs.single
    gives, shows = calls["pages of the waiting room that give a place"], calls["pages of the waiting room"]
    seconds, people = int(inputs.MINUTES.value * 60), inputs.PEOPLE.value
    first = people * inputs.FIRST_MINUTE.value / 60
    later = people * (1 - inputs.FIRST_MINUTE.value) / (seconds - 60)
    arrivals = [first if second < 60 else later for second in range(seconds)]
    row = in_a_row(calls["joins"])
    waits = waits_behind(arrivals, row)
    line, loads, joined, backlog = 0.0, [0.0], 0.0, 0.0
    rate, at_end = inputs.RELEASED.value, 0.0
    longest = 0.0
    for came in arrivals:
        backlog += came
        served = min(backlog, row)
        backlog -= served
        joined += served
        line = max(0.0, line + served - rate)
        longest = max(longest, line)
        loads.append(page_loads(line, rate))
        at_end = line
    shown = sum(loads) + at_end  # everybody is told once more that it is over
    busiest = {
        "pages of the waiting room that give a place": min(first, row),
        "pages of the waiting room": max(loads),
        "registrations by e-mail": rate,
        "pages of an event": rate * 2,
    }
    total = {
        "pages of the waiting room that give a place": people,
        "pages of the waiting room": shown,
        "registrations by e-mail": inputs.SEATS.value,
        "pages of an event": inputs.SEATS.value * 2,
    }
    settled = 1e6 / single["settlement, microseconds"]
    mails = single["mails a second"]
    resources = [
        Resource("the row of one queue", "places a second", first, row, only_one=True),
        Resource("settlement by one process", "registrations a second", rate, settled, only_one=True),
        Resource("mails by one process", "mails a second", rate, mails, only_one=True),
    ]
    edge = people * calls["pages of an event"].received
    facts = [
        ("people who come in a second of the first minute", first, ""),
        ("people in the line at most", longest, ""),
        ("pages of the waiting room in the busiest second", max(loads), ""),
        ("pages of the waiting room in all", shown, ""),
        ("bytes of these pages in the busiest second", max(loads) * shows.received / GB, "GB"),
        ("bytes of the page of the event, from the edge", edge / GB, "GB"),
        ("minutes until the last mail is sent", inputs.SEATS.value / min(mails, rate) / 60, ""),
    ]
    told = [
        Wait("a place in the line, in the busiest minute", weighted(waits[:60], 0.5), weighted(waits[:60], 0.99)),
        Wait("a place in the line, all people", weighted(waits, 0.5), weighted(waits, 0.99)),
        _named(latency("place", gives, 1), "the page that gives a place, if the row keeps up"),
        _named(latency("page", shows, 1), "a page of the waiting room"),
        _named(latency("registration", calls["registrations by e-mail"], 1), "a registration"),
        _mail_wait(inputs.SEATS.value, inputs.SEATS.value / rate, mails),
        Wait("the news that all seats are gone", 30, 69),
    ]
    return _plan(costs, busiest, total, facts, resources, told, hours=0.5, mails=inputs.SEATS.value, sent=edge)


def page_loads(line: float, rate: float) -> float:
    """How many pages of a waiting room are loaded a second by a line of so many people (`room.refresh_seconds`)."""
    loads, nearer = 0.0, 0.0
    for wait, refresh in ((60, 5), (300, 15), (900, 30), (math.inf, 60)):
        people = max(0.0, min(line, wait * rate) - nearer)
        loads += people / refresh
        nearer += people
    return loads


def _named(wait: Wait, what: str) -> Wait:
    return wait._replace(what=what)


def _mail_wait(mails: float, seconds: float, per_second: float) -> Wait:
    """How long mails wait that are caused evenly within so many seconds, and sent in order of arrival."""
    last = max(0.0, mails / per_second - seconds)
    return Wait("the mail", last * 0.5, last * 0.99)


def saturday(costs: Costs) -> Plan:
    """Many organizers with many open events each, on one day."""
    calls, single = costs.calls, costs.single
    events = inputs.ORGANIZERS.value * inputs.OPEN_EVENTS.value
    registrations = events * inputs.REGISTRATIONS.value
    busiest_second = inputs.BUSIEST_HOUR.value / 3600
    total = {
        "registrations by e-mail": registrations,
        "polls": registrations * inputs.POLLS.value,
        "pages of an event": registrations * inputs.VIEWS.value,
    }
    busiest = {name: count * busiest_second for name, count in total.items()}
    peak = busiest["registrations by e-mail"]
    views = busiest["pages of an event"]
    streams = views * inputs.READING.value
    settled = 1e6 / single["settlement, microseconds"]
    mails = single["mails a second"]
    opened = views * single["stream opened, microseconds of the service"] * MICRO
    told = peak * streams / events * single["stream told, microseconds of the service"] * MICRO
    service = opened + told + peak * single["mail, microseconds of the service"] * MICRO
    database = (
        peak * MICRO * (single["settlement, microseconds of PostgreSQL"] + single["mail, microseconds of PostgreSQL"])
    )
    resources = [
        Resource("settlement by one process", "registrations a second", peak, settled, only_one=True),
        Resource("mails by one process", "mails a second", peak, mails, only_one=True),
    ]
    facts = [
        ("open events", events, ""),
        ("registrations on that day", registrations, ""),
        ("registrations in the busiest second", peak, ""),
        ("pages in the busiest second", views, ""),
        ("event streams open at once", streams, ""),
        ("memory of these streams", streams * single["stream, bytes of memory"] / GB, "GB"),
        ("days until the last mail is sent", registrations / mails / 86_400, ""),
    ]
    waits = [
        _named(latency("registration", calls["registrations by e-mail"], 1), "a registration"),
        _named(latency("poll", calls["polls"], 1), "a poll"),
        _named(latency("page", calls["pages of an event"], 1), "the page of an event"),
        _mail_wait(registrations, 86_400, mails),
    ]
    more = (service, database, 0.0, 0.0, 0.0)
    return _plan(costs, busiest, total, facts, resources, waits, hours=24, mails=registrations, more=more)


def friday(costs: Costs) -> Plan:
    """Many shops with many orders a second each."""
    calls, single = costs.calls, costs.single
    orders = inputs.SHOPS.value * inputs.ORDERS.value
    seconds = inputs.HOURS.value * 3600
    storefront = "availability of a shop of 1,000 variants"
    busiest = {storefront: orders * inputs.LOOKS.value}
    total = {storefront: busiest[storefront] * seconds}
    service = orders * single["order, microseconds of the service"] * MICRO
    database = orders * single["order, microseconds of PostgreSQL"] * MICRO
    log = orders * single["order, bytes of WAL"]
    stored = orders * seconds * single["order, bytes stored"]
    of_shop = single["order, microseconds of PostgreSQL"] * MICRO * inputs.ORDERS.value
    one_primary = inputs.PRIMARY_CORES.value * inputs.FULL.value
    resources = [Resource("the turn of one shop", "seconds a second", of_shop, 1, only_one=True)]
    facts = [
        ("orders a second, all shops", orders, ""),
        ("webhooks a second", orders * single["order, webhooks"], ""),
        ("calls to the platform a second", orders * single["order, calls to the platform"], ""),
        ("orders in all", orders * seconds, ""),
        ("shops of 20 orders a second on one primary", one_primary / of_shop, ""),
    ]
    waits = [
        Wait("a webhook answered, measured at 30 orders a second", *_milliseconds(single, "webhook answered")),
        Wait("from the order to its levels, measured at 30 orders a second", *_milliseconds(single, "order to level")),
        _named(latency("availability", calls[storefront], 1), "availability of a shop"),
    ]
    more = (service, database, log, stored, 0.0)
    return _plan(costs, busiest, total, facts, resources, waits, hours=inputs.HOURS.value, more=more)


def _milliseconds(single: dict[str, float], what: str) -> tuple[float, float]:
    return single[f"{what}, milliseconds p50"] / 1000, single[f"{what}, milliseconds p99"] / 1000
