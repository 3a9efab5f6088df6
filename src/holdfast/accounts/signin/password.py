"""Signing in with a password, where an account has one."""

from typing import Any

from holdfast.accounts import passwords, sessions
from holdfast.accounts.directory import Directory
from holdfast.kit.caller import Caller
from holdfast.kit.command import Command
from holdfast.kit.steps import Concluded, Steps


class SignIn(Command):
    """Asks to sign in with a password.

    called    what the browser calls itself
    """

    email: str
    password: str
    called: str


class SignInByPassword:
    """Signs people in."""

    def __init__(self, directory: Directory) -> None:
        self._directory = directory

    async def sign_in(self, steps: Steps[Any], caller: Caller, command: SignIn) -> Concluded[str | None]:
        """The secret of a new session; None if the password is wrong.

        It takes as long for an address that nobody has.
        """
        found = await steps.read(lambda reader: self._directory.find_password(reader, command.email))
        is_right = await passwords.matches(command.password, found.hash if found else None)

        async def begin(tx: Any) -> str | None:
            # Who ends a password, and then all sessions, also ends the one that begins at this moment.
            if not is_right or found is None or not await self._directory.still_has(tx, found):
                return None
            return await sessions.begin(tx, found.account_id, "password", command.called)

        return await steps.conclude(begin)
