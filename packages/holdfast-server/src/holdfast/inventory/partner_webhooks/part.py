"""What partner webhooks register: their route, the work on stored ones, and the forgetting of handled ones."""

from collections.abc import Sequence
from typing import Any, Protocol, TypeVar

from holdfast.inventory.partner_webhooks import routes, sql
from holdfast.inventory.partner_webhooks.inbox import WebhookWork
from holdfast.inventory.partner_webhooks.model import Handlers
from holdfast.inventory.resources import Database
from holdfast.kit.background.row_work import RowWork
from holdfast.kit.background.tasks import Schedule, TimedTask, in_batches
from holdfast.kit.operations.rate_limits import Limits
from holdfast.kit.process.part import Endpoints, Part


class WebhookContext(Protocol):
    """What the parts of the service share, for partner webhooks."""

    @property
    def database(self) -> Database: ...

    @property
    def limits(self) -> Limits: ...


C = TypeVar("C", bound=WebhookContext)


def partner_webhook_part(handlers: Handlers, context: type[C]) -> Part[C]:
    """The part of the service with these handlers, by topic."""

    def endpoints(context: C) -> Endpoints:
        return Endpoints(routes.routes(context.database, context.limits, handlers))

    def rows(database: Database) -> Sequence[RowWork[Any]]:
        return [WebhookWork(database, handlers)]

    return Part(
        endpoints=endpoints,
        row_work=rows,
        timed_tasks=(TimedTask("forget", Schedule.daily("04:13"), in_batches(sql.forget_handled)),),
    )
