"""The operations of signing in and out. They have no routes and no tools of their own."""

from functools import partial
from typing import Any

from holdfast.accounts import known_browsers, sessions
from holdfast.accounts.directory import Directory
from holdfast.accounts.signin import links
from holdfast.accounts.signin.links import SignInByLink
from holdfast.accounts.signin.password import SignInByPassword
from holdfast.kit.contract.caller import Caller
from holdfast.kit.contract.command import Command
from holdfast.kit.postgres.database import Reader, Tx
from holdfast.kit.running.operation import SIGN_IN_LINE, Operation
from holdfast.kit.running.run_modes import read, single, steps


class EndSessions(Command):
    """Asks to end a session of an account; without an id all its sessions."""

    account_id: int
    id: int | None = None


class ListSessions(Command):
    """Asks for the sessions of an account."""

    account_id: int


async def end(tx: Tx[Any], caller: Caller, command: EndSessions) -> None:
    """End sessions."""
    await sessions.end(tx, command.account_id, command.id)


async def list_open(reader: Reader[Any], caller: Caller, command: ListSessions) -> list[sessions.SessionRow]:
    """Return the sessions of an account."""
    return await sessions.list_open(reader, command.account_id)


class SignInOperations:
    """The sign-in operations for the accounts of a service."""

    def __init__(self, directory: Directory) -> None:
        operation = partial(Operation, line=SIGN_IN_LINE)
        self.ask = operation("ask_sign_in_link", None, single(links.ask))
        self.look = operation("look_at_sign_in_link", None, read(links.look))
        self.use = operation("sign_in_by_link", None, single(SignInByLink(directory).use))
        self.by_password = Operation(
            "sign_in_by_password", None, steps(SignInByPassword(directory).sign_in), line=SIGN_IN_LINE
        )
        self.known = operation("look_at_known_browser", None, read(known_browsers.is_known_browser))
        self.list = operation("list_sessions", None, read(list_open))
        self.end = operation("end_sessions", None, single(end))
        self.all = (self.ask, self.look, self.use, self.by_password, self.known, self.list, self.end)
