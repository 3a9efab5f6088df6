"""The operations of signing in and out. They have no routes and no tools of their own."""

from typing import Any

from holdfast.accounts import sessions
from holdfast.accounts.directory import Directory
from holdfast.accounts.signin import links
from holdfast.accounts.signin.links import Use
from holdfast.accounts.signin.password import SignInByPassword
from holdfast.kit.caller import Caller
from holdfast.kit.command import Command
from holdfast.kit.database import Reader, Tx
from holdfast.kit.modes import read, single, steps
from holdfast.kit.operation import Operation


class EndSessions(Command):
    """Asks to end a session of an account; without an id all of them."""

    account_id: int
    id: int | None = None


class ListSessions(Command):
    """Asks for the sessions of an account."""

    account_id: int


async def end(tx: Tx[Any], caller: Caller, command: EndSessions) -> None:
    """End sessions."""
    await sessions.end(tx, command.account_id, command.id)


async def list_open(reader: Reader[Any], caller: Caller, command: ListSessions) -> list[sessions.Listed]:
    """The sessions of an account."""
    return await sessions.list_open(reader, command.account_id)


class SignInOperations:
    """The operations for the accounts of a service."""

    def __init__(self, directory: Directory) -> None:
        self.ask = Operation("ask_sign_in_link", None, single(links.ask))
        self.look = Operation("look_at_sign_in_link", None, read(links.look))
        self.use = Operation("sign_in_by_link", None, single(Use(directory).use))
        self.by_password = Operation("sign_in_by_password", None, steps(SignInByPassword(directory).sign_in))
        self.list = Operation("list_sessions", None, read(list_open))
        self.end = Operation("end_sessions", None, single(end))
        self.all = (self.ask, self.look, self.use, self.by_password, self.list, self.end)
