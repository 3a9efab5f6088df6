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
    "share of its time that a core works in the busiest minute",
    0.6,
    "the table below says what p99 is then",
)
STANDBY = Input("seconds until the standby has confirmed a commit", 0.001, "a standby in the same region")
WAY = Input("seconds through the load balancer, each way", 0.0005, "without the way to the person's device")
CONNECTIONS = Input("connections of a process to its database", 10, "the default")
LOG_BYTES = Input(
    "bytes a second that the log of one primary takes",
    500e6,
    "half of what a fast network disk promises",
)
MOST_CONNECTIONS = Input("connections that one primary serves", 2_000, "PostgreSQL has a process for each")
STREAMS = Input("event streams that one process holds", 15_000, "the default")
COMMON = (PRIMARY_CORES, FULL, STANDBY, WAY, CONNECTIONS, MOST_CONNECTIONS, STREAMS, LOG_BYTES)

PEOPLE = Input(
    "people",
    14e6,
    "[reported for one sale](https://gmcfactory.com/verified-fan-taylor-swift/)",
)
MINUTES = Input("minutes in which they come", 10, "")
FIRST_MINUTE = Input("share of them that comes in the first minute", 0.3, "people know when it opens")
SEATS = Input("seats", 60_000, "a stadium")
RELEASED = Input("people that the waiting room releases a second", 100, "the seats last for the ten minutes")
SCRIPTS = Input(
    "share of people whose pages ask the edge for the progress of the line",
    0.98,
    "the others have no scripts",
)
PROGRESS_BYTES = Input("bytes of the progress of a line", 2_000, "a part of a page")
CROWD = (PEOPLE, MINUTES, FIRST_MINUTE, SEATS, RELEASED, SCRIPTS, PROGRESS_BYTES)

ORGANIZERS = Input("organizers", 100_000, "")
OPEN_EVENTS = Input("open events of each", 1_000, "")
REGISTRATIONS = Input("registrations for an event on that day", 10, "")
BUSIEST_HOUR = Input("share of the day's load in the busiest hour", 0.12, "nearly three times the mean")
VIEWS = Input("views of the page of an event for each registration", 10, "one visitor in ten registers")
READING = Input("seconds that the page stays open, with its event stream", 30, "")
POLLS = Input("polls for each registration", 2, "programs ask until they see 200")
SATURDAY = (ORGANIZERS, OPEN_EVENTS, REGISTRATIONS, BUSIEST_HOUR, VIEWS, READING, POLLS)

SHOPS = Input("shops", 50_000, "")
ORDERS = Input("orders of each a second", 20, "")
HOURS = Input("hours for which so many come", 24, "the most that it can mean")
LOOKS = Input("answers about availability for each order", 20, "pages of products that ask the storefront")
FRIDAY = (SHOPS, ORDERS, HOURS, LOOKS)
