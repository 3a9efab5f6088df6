"""Where agents call."""

from starlette.types import Receive, Scope, Send

from holdfast.kit.keys import Authenticate
from holdfast.kit.limits import Limits
from holdfast.kit.mcp.model import Agents
from holdfast.kit.operation import Operations
from holdfast.kit.problems import ErrorBody
from holdfast.kit.runner import Runner
from holdfast.kit.streams import Streams


class Endpoint:
    """The endpoint as an ASGI application."""

    def __init__(
        self,
        agents: Agents,
        operations: Operations,
        runner: Runner,
        authenticate: Authenticate,
        limits: Limits,
        streams: Streams,
        error_body: ErrorBody,
    ) -> None: ...

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        raise NotImplementedError
