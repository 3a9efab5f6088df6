"""What the parts of the events service share in a process."""

from typing import NamedTuple

from holdfast.accounts.agents.approvals import RequestApprovals
from holdfast.accounts.signed_in_pages import SignedInPages
from holdfast.events.resources import Database
from holdfast.kit.http.event_streams import Streams
from holdfast.kit.operations.rate_limits import Limits
from holdfast.kit.operations.runner import Runner


class Context(NamedTuple):
    """What the parts of the service share in a process.

    runner            runs the operations
    console_runner    runs them for people in the console, who do not wait behind the programs of their own organizer
    streams           the open event streams
    signed_in         the pages of people who are signed in
    approvals         what agents ask for, for people who approve it
    """

    database: Database
    runner: Runner
    console_runner: Runner
    limits: Limits
    streams: Streams
    signed_in: SignedInPages
    approvals: RequestApprovals

    @property
    def account_runner(self) -> Runner:
        """Runs operations for people who are not signed in."""
        return self.runner
