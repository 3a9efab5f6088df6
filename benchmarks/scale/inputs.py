"""What the plans assume: inputs that were not measured, each with its source; and the prices."""

from pathlib import Path
from typing import NamedTuple

import msgspec
from msgspec import Struct

PRICES = Path(__file__).with_name("prices.json")


class Input(NamedTuple):
    """A number that a plan takes as given."""

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


PRIMARY_CORES = Input(
    "cores of one primary", 64, "an assumption: large machines for rent have 64 to 192; each works as fast as one here"
)
FULL = Input(
    "share of its time that a core works in the busiest minute",
    0.6,
    "an assumption: the model says below what p99 is then",
)
STANDBY = Input(
    "seconds until the standby has confirmed a commit", 0.001, "an assumption: a standby in the same region"
)
WAY = Input(
    "seconds through the load balancer, each way", 0.0005, "an assumption; the way to the person's device is not in it"
)
CONNECTIONS = Input("connections of a process to its database", 10, "the default of DATABASE_POOL_SIZE")
LOG_BYTES = Input(
    "bytes a second that the log of one primary takes",
    500e6,
    "an assumption: half of what a fast network disk promises",
)
MOST_CONNECTIONS = Input(
    "connections that one primary serves", 2_000, "an assumption: PostgreSQL has a process for each of them"
)
STREAMS = Input("event streams that one process holds", 15_000, "the default of MAX_STREAMS")
COMMON = (PRIMARY_CORES, FULL, STANDBY, WAY, CONNECTIONS, MOST_CONNECTIONS, STREAMS, LOG_BYTES)

PEOPLE = Input(
    "people",
    14e6,
    "the question; so many were reported for one sale in November 2022:"
    " https://gmcfactory.com/verified-fan-taylor-swift/",
)
MINUTES = Input("minutes in which they come", 10, "the question")
FIRST_MINUTE = Input("share of them that comes in the first minute", 0.3, "an assumption: people know when it opens")
SEATS = Input("seats", 60_000, "an assumption: a stadium")
RELEASED = Input(
    "people that the waiting room releases a second", 100, "chosen so that the seats last for the ten minutes"
)
SCRIPTS = Input(
    "share of people whose pages ask the edge for the progress of the line",
    0.98,
    "an assumption: the others have no scripts",
)
PROGRESS_BYTES = Input("bytes of the progress of a line", 2_000, "an assumption: it is a part of a page")
CROWD = (PEOPLE, MINUTES, FIRST_MINUTE, SEATS, RELEASED, SCRIPTS, PROGRESS_BYTES)

ORGANIZERS = Input("organizers", 100_000, "the question")
OPEN_EVENTS = Input("open events of each", 1_000, "the question")
REGISTRATIONS = Input("registrations for an event on that day", 10, "an assumption")
BUSIEST_HOUR = Input(
    "share of the day's load in the busiest hour", 0.12, "an assumption: nearly three times the mean of 1/24"
)
VIEWS = Input("views of the page of an event for each registration", 10, "an assumption: one visitor in ten registers")
READING = Input("seconds that the page stays open, with its event stream", 30, "an assumption")
POLLS = Input("polls for each registration", 2, "an assumption: programs ask until they see 200")
SATURDAY = (ORGANIZERS, OPEN_EVENTS, REGISTRATIONS, BUSIEST_HOUR, VIEWS, READING, POLLS)

SHOPS = Input("shops", 50_000, "the question")
ORDERS = Input("orders of each a second", 20, "the question")
HOURS = Input("hours for which so many come", 24, "an assumption: the most that the question can mean")
LOOKS = Input(
    "answers about availability for each order", 20, "an assumption: pages of products that ask the storefront"
)
FRIDAY = (SHOPS, ORDERS, HOURS, LOOKS)
