"""The three plans: what a crowd, a Saturday and a Friday need.

Work that is the same for every visitor is counted, not simulated: processor seconds and bytes are sums. Waits behind a
resource that serves in order of arrival follow exactly from how many have come and how many were served by each
second. Waits in a process and its database come from the event model, in which one of several like processes has its
share of the load.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

from benchmarks.scale import inputs
from benchmarks.scale.cells import Cells
from benchmarks.scale.costs import CallCosts, Costs
from benchmarks.scale.model import MAX_BATCH, MICRO
from benchmarks.scale.waits import Wait, waits_behind, weighted
from holdfast.kit.operations.admission import MAX_RETRY_SECONDS, Priority

GB = 1e9

MAIL_PROCESSES = 16
"""Processes that send mails at the same time at most: there are 64 shards, and a process sends four of them."""

SELDOM = "pages of events that are seldom looked at"


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

    waits        those that are not calls of a process
    facts        what happens, in words and figures
    resources    with the one that saturates first in front
    processes    of the service
    primaries    that PostgreSQL would need, if its load could be spread
    """

    facts: list[tuple[str, float, str]]
    resources: list[Resource]
    waits: Sequence[Wait]
    service_cores: float
    processes: int
    database_cores: float
    primaries: int
    bill: Bill


def in_a_row(cost: CallCosts) -> float:
    """How many calls a second pass a lock that a batch holds until its commit is confirmed, with full batches."""
    seconds = (cost.database.batch + MAX_BATCH * cost.database.call + cost.wait) * MICRO + inputs.STANDBY.value
    return MAX_BATCH / seconds


def _plan(
    costs: Costs,
    cells: Cells,
    busiest: dict[str, float],
    total: dict[str, float],
    facts: list[tuple[str, float, str]],
    resources: list[Resource],
    hours: float,
    waits: Sequence[Wait] = (),
    mails: float = 0,
    more: tuple[float, float, float, float, float] = (0, 0, 0, 0, 0),
    sent: float = 0,
) -> Plan:
    """Sum up a plan.

    busiest   calls in the busiest second, by kind
    total     calls in all, by kind
    hours     how long machines are rented for the busiest second
    more      what is not a call: cores of the service and of PostgreSQL, bytes a second of the log, bytes stored in
              all, event streams that are open
    """
    service = sum(count * cells[name].service for name, count in busiest.items()) + more[0]
    database = sum(count * cells[name].database for name, count in busiest.items()) + more[1]
    log = sum(count * costs.calls[name].wal for name, count in busiest.items()) + more[2]
    stored = sum(count * costs.calls[name].stored for name, count in total.items()) + more[3]
    out = sum(count * costs.calls[name].received for name, count in total.items()) + sent
    processes = math.ceil(max(service / inputs.FULL.value, more[4] / inputs.STREAMS.value))
    one_primary = inputs.PRIMARY_CORES.value * inputs.FULL.value
    connections = processes * inputs.CONNECTIONS.value
    resources = [
        *resources,
        Resource("processor of one primary", "cores", database, one_primary, only_one=True),
        Resource("log of one primary", "MB a second", log / 1e6, inputs.LOG_BYTES.value / 1e6, only_one=True),
        Resource("connections to one primary", "", connections, inputs.MAX_CONNECTIONS.value, only_one=True),
        Resource("one process of the service", "cores", service, inputs.FULL.value, only_one=False),
    ]
    # What more machines do not help comes first.
    resources.sort(key=lambda one: (not one.only_one, -one.times))
    primaries = max(1, math.ceil(max(database / one_primary, log / inputs.LOG_BYTES.value)))
    core_hours = (processes + primaries * inputs.PRIMARY_CORES.value * 2) * hours  # each primary has a standby
    bill = Bill(core_hours, stored, out, mails)
    return Plan(facts, resources, waits, service, processes, database, primaries, bill)


def crowd(costs: Costs, cells: Cells) -> Plan:
    """One event that many people want within minutes, with a waiting room in front."""
    calls, single = costs.calls, costs.single
    seconds, people = int(inputs.MINUTES.value * 60), inputs.PEOPLE.value
    first = people * inputs.FIRST_MINUTE.value / 60
    later = people * (1 - inputs.FIRST_MINUTE.value) / (seconds - 60)
    arrivals = [first if second < 60 else later for second in range(seconds)]
    row = in_a_row(calls["joins"])
    waits = waits_behind(arrivals, row)
    page = cells["pages of the waiting room"]
    line, loads, backlog, again = 0.0, [0.0], 0.0, [0.0]
    rate, at_end = inputs.RELEASED.value, 0.0
    longest = 0.0
    for came in arrivals:
        backlog += came
        served = min(backlog, row)
        backlog -= served
        again.append(max(0.0, backlog - row * Priority.CHANGE.value) / MAX_RETRY_SECONDS)
        line = max(0.0, line + served - rate)
        longest = max(longest, line)
        loads.append(page_loads(line, rate))
        at_end = line
    questions = sum(loads) + at_end  # every visitor asks once more, and learns that it is over
    without = 1 - inputs.SCRIPTS.value
    busiest = {
        "pages of the waiting room that give a place": min(first, row),
        "pages of the waiting room": first + max(loads) * without + rate,
        "registrations by e-mail": rate,
        "pages of an event": rate * 2 + max(again),  # a refusal costs as much as a page that is kept
    }
    total = {
        "pages of the waiting room that give a place": people,
        "pages of the waiting room": people + questions * without + inputs.SEATS.value,
        "registrations by e-mail": inputs.SEATS.value,
        "pages of an event": inputs.SEATS.value * 2 + sum(again),
    }
    settled = 1e6 / single["settlement, microseconds"]
    mails = MAIL_PROCESSES * single["mails a second"]
    resources = [
        Resource("the row of one waiting room", "places a second", first, row, only_one=True),
        Resource("settlement by one process", "registrations a second", rate, settled, only_one=True),
        Resource("mails of 64 shards", "mails a second", rate, mails, only_one=True),
    ]
    progress = questions * inputs.SCRIPTS.value * inputs.PROGRESS_BYTES.value
    from_cache = people * calls["pages of an event"].received + progress
    facts = [
        ("people a second in the first minute", first, ""),
        ("people in the waiting room at most", longest, ""),
        ("questions to the cache in the busiest second", max(loads), ""),
        ("pages of the waiting room in the busiest second", busiest["pages of the waiting room"], ""),
        ("people refused in the busiest second", max(again), ""),
        ("cores for the questions without a cache", max(loads) * page.service, ""),
        ("bytes from the cache", from_cache / GB, "GB"),
        ("minutes until the last mail is sent", inputs.SEATS.value / min(mails, rate) / 60, ""),
    ]
    people_wait = [
        Wait("a place in the waiting room, busiest minute", weighted(waits[:60], 0.5), weighted(waits[:60], 0.99)),
        Wait("a place in the waiting room, all", weighted(waits, 0.5), weighted(waits, 0.99)),
        Wait("the news that all seats are gone", 30, 69),
    ]
    return _plan(
        costs,
        cells,
        busiest,
        total,
        facts,
        resources,
        hours=0.5,
        waits=people_wait,
        mails=inputs.SEATS.value,
        sent=from_cache,
    )


def page_loads(line: float, rate: float) -> float:
    """How many pages of a waiting room are loaded a second by a line of this many people (`room.refresh_seconds`)."""
    loads, nearer = 0.0, 0.0
    for wait, refresh in ((60, 5), (300, 15), (900, 30), (math.inf, 60)):
        people = max(0.0, min(line, wait * rate) - nearer)
        loads += people / refresh
        nearer += people
    return loads


def saturday(costs: Costs, cells: Cells) -> Plan:
    """Many organizers with many open events each, on one day."""
    single = costs.single
    events = inputs.ORGANIZERS.value * inputs.OPEN_EVENTS.value
    registrations = events * inputs.REGISTRATIONS.value
    busiest_second = inputs.BUSIEST_HOUR.value / 3600
    total = {
        "registrations by e-mail": registrations,
        "polls": registrations * inputs.POLLS.value,
        SELDOM: registrations * inputs.VIEWS.value,
    }
    busiest = {name: count * busiest_second for name, count in total.items()}
    peak = busiest["registrations by e-mail"]
    views = busiest[SELDOM]
    streams = views * inputs.READING.value
    settled = 1e6 / single["settlement, microseconds"]
    mails = MAIL_PROCESSES * single["mails a second"]
    opened = views * single["stream opened, microseconds of the service"] * MICRO
    changes = peak * streams / events * single["stream told, microseconds of the service"] * MICRO
    service = opened + changes + peak * single["mail, microseconds of the service"] * MICRO
    database = (
        peak * MICRO * (single["settlement, microseconds of PostgreSQL"] + single["mail, microseconds of PostgreSQL"])
    )
    resources = [
        Resource("settlement by one process", "registrations a second", peak, settled, only_one=True),
        Resource("mails of 64 shards", "mails a second", peak, mails, only_one=True),
    ]
    facts = [
        ("registrations on that day", registrations, ""),
        ("registrations in the busiest second", peak, ""),
        ("pages in the busiest second", views, ""),
        ("event streams open at once", streams, ""),
        ("memory of these streams", streams * single["stream, bytes of memory"] / GB, "GB"),
        ("days until the last mail is sent", registrations / mails / 86_400, ""),
    ]
    more = (service, database, 0.0, 0.0, streams)
    return _plan(costs, cells, busiest, total, facts, resources, hours=24, mails=registrations, more=more)


def friday(costs: Costs, cells: Cells) -> Plan:
    """Many shops with many orders a second each."""
    single = costs.single
    orders = inputs.SHOPS.value * inputs.ORDERS.value
    seconds = inputs.HOURS.value * 3600
    storefront = "availability of a shop of 1,000 variants"
    busiest = {storefront: orders * inputs.AVAILABILITY_READS_PER_ORDER.value}
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
        ("partner webhooks a second", orders * single["order, webhooks"], ""),
        ("calls to the platform a second", orders * single["order, calls to the platform"], ""),
        ("such shops on one primary", one_primary / of_shop, ""),
    ]
    more = (service, database, log, stored, 0.0)
    return _plan(costs, cells, busiest, total, facts, resources, hours=inputs.HOURS.value, more=more)
