"""What accounts register with a service: signing in and out, sessions, agents, and stopping all mails to a mailbox."""

from typing import LiteralString, Protocol, TypeVar

from holdfast.accounts import sessions
from holdfast.accounts.addresses import unifying_loop
from holdfast.accounts.agents import actions, requests
from holdfast.accounts.agents.limits import LimitOperations
from holdfast.accounts.directory import Directory
from holdfast.accounts.known_browsers import forget_browsers
from holdfast.accounts.signed_in_pages import SignedInPages
from holdfast.accounts.signin.links import forget_links
from holdfast.accounts.signin.operations import SignInOperations
from holdfast.accounts.signin.pages import SignInPages
from holdfast.accounts.stopped_mails import mailboxes
from holdfast.accounts.stopped_mails.pages import StoppedMailsPages
from holdfast.kit.background.tasks import Schedule, TimedTask, in_batches
from holdfast.kit.operations.runner import Runner
from holdfast.kit.process.part import Endpoints, Part
from holdfast.kit.security.service_secret import SealedTable


class AccountContext(Protocol):
    """What the parts of a service share, for accounts.

    account_runner    runs operations for people who are not signed in
    """

    @property
    def signed_in(self) -> SignedInPages: ...

    @property
    def account_runner(self) -> Runner: ...


C = TypeVar("C", bound=AccountContext)


def account_part(table: LiteralString, directory: Directory, limits: LimitOperations, context: type[C]) -> Part[C]:
    """The part of accounts in a service whose accounts are the rows of `table`.

    limits    the operations on the daily limits of agents
    """
    operations = SignInOperations(directory)

    def endpoints(context: C) -> Endpoints:
        runner, signed_in = context.account_runner, context.signed_in
        stopping = StoppedMailsPages(runner, signed_in.limits, signed_in.site, signed_in.secret)
        return Endpoints(
            routes=[*SignInPages(operations, directory, runner, signed_in).routes(), *stopping.routes()],
            caches=[signed_in.sessions.forgetting],
        )

    return Part(
        operations=(*operations.all, *mailboxes.OPERATIONS, *limits.operations),
        endpoints=endpoints,
        loops=(unifying_loop(table),),
        timed_tasks=(
            TimedTask("forget_links", Schedule.hourly(11), in_batches(forget_links)),
            TimedTask("forget_known", Schedule.daily("04:21"), in_batches(forget_browsers)),
            TimedTask("forget_agent_actions", Schedule.daily("03:53"), in_batches(actions.forget_actions)),
            TimedTask("forget_agent_requests", Schedule.hourly(43), in_batches(requests.forget_requests)),
            TimedTask("forget_sessions", Schedule.daily("04:27"), in_batches(sessions.forget_sessions)),
        ),
        sealed=(SealedTable("agent_requests", "id", "bigint"),),
    )
