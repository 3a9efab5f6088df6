"""What the parts of the inventory service share in a process."""

from typing import NamedTuple

from holdfast.accounts.agents.approvals import RequestApprovals
from holdfast.accounts.signed_in_pages import SignedInPages
from holdfast.inventory.availability.cache import AvailabilityCache
from holdfast.inventory.resources import Database
from holdfast.kit.http.event_streams import Streams
from holdfast.kit.operations.rate_limits import Limits
from holdfast.kit.operations.runner import Runner


class Context(NamedTuple):
    """What the parts of the service share in a process.

    runner            runs the operations of a shop
    console_runner    runs them for people in the console, who do not wait behind the programs of their own shop
    account_runner    runs the operations that belong to no shop, such as those of signing in
    streams           the open event streams
    signed_in         the pages of people who are signed in
    approvals         what agents ask for, for people who approve it
    availability      the cache of what can be sold of each shop, and the feeds of its changes
    """

    database: Database
    runner: Runner
    console_runner: Runner
    account_runner: Runner
    limits: Limits
    streams: Streams
    signed_in: SignedInPages
    approvals: RequestApprovals
    availability: AvailabilityCache
