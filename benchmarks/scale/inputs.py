"""What the plans assume: inputs that were not measured, each with its source; and the prices."""

from pathlib import Path
from typing import NamedTuple

import msgspec
from msgspec import Struct

PRICES = Path(__file__).with_name("prices.json")


class Input(NamedTuple):
    """A number that a plan takes as given.

    source    why this number; of some it is only what the plan asks
    """

    what: str
    value: float
    source: str


class Price(Struct, frozen=True):
    what: str
    dollars: float
    source: str
    date: str


def prices() -> dict[str, Price]:
    """The prices by what they are for."""
    return {price.what: price for price in msgspec.json.decode(PRICES.read_bytes(), type=list[Price])}


PRIMARY_CORES = Input("cores of one primary", 64, "large machines for rent have 64 to 192")
FULL = Input(
    "share of time that a core works in the busiest minute",
    0.6,
    "",
)
STANDBY = Input("seconds until a standby in the region confirms a commit", 0.001, "")
SECONDS_ONE_WAY = Input("seconds through the load balancer, each way", 0.0005, "")
CONNECTIONS = Input("connections of a process to its database", 10, "")
LOG_BYTES = Input(
    "bytes a second of the log of one primary",
    500e6,
    "half of a fast network disk",
)
MAX_CONNECTIONS = Input("connections that one primary serves", 2_000, "a process of PostgreSQL each")
STREAMS = Input("event streams that one process holds", 15_000, "")
COMMON = (PRIMARY_CORES, FULL, STANDBY, SECONDS_ONE_WAY, CONNECTIONS, MAX_CONNECTIONS, STREAMS, LOG_BYTES)

PEOPLE = Input(
    "people",
    14e6,
    "[reported for one sale](https://gmcfactory.com/verified-fan-taylor-swift/)",
)
MINUTES = Input("minutes in which they come", 10, "")
FIRST_MINUTE = Input("share of them that comes in the first minute", 0.3, "")
SEATS = Input("seats", 60_000, "a stadium")
RELEASED = Input("people released a second", 100, "the seats last ten minutes")
SCRIPTS = Input(
    "share of people whose pages ask the cache",
    0.98,
    "the others have no scripts",
)
PROGRESS_BYTES = Input("bytes of an answer of the cache", 2_000, "")
CROWD = (PEOPLE, MINUTES, FIRST_MINUTE, SEATS, RELEASED, SCRIPTS, PROGRESS_BYTES)

ORGANIZERS = Input("organizers", 100_000, "")
OPEN_EVENTS = Input("open events of each", 1_000, "")
REGISTRATIONS = Input("registrations for an event on that day", 10, "")
BUSIEST_HOUR = Input("share of the day's load in the busiest hour", 0.12, "")
VIEWS = Input("views of the page for each registration", 10, "")
READING = Input("seconds that the page and its event stream stay open", 30, "")
POLLS = Input("polls for each registration", 2, "")
SATURDAY = (ORGANIZERS, OPEN_EVENTS, REGISTRATIONS, BUSIEST_HOUR, VIEWS, READING, POLLS)

SHOPS = Input("shops", 50_000, "")
ORDERS = Input("orders of each a second", 20, "")
HOURS = Input("hours for which so many come", 24, "")
AVAILABILITY_READS_PER_ORDER = Input("answers about availability for each order", 20, "")
FRIDAY = (SHOPS, ORDERS, HOURS, AVAILABILITY_READS_PER_ORDER)
