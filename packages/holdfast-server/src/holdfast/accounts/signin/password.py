"""Signing in with a password, where an account has one."""

from typing import Any

from msgspec import Struct

from holdfast.accounts import known_browsers, passwords, sessions
from holdfast.accounts.directory import Directory
from holdfast.kit.contract.caller import Caller
from holdfast.kit.contract.command import Command
from holdfast.kit.running.steps import Conclusion, Steps


class SignIn(Command):
    """Asks to sign in with a password.

    user_agent    the User-Agent header of the browser
    """

    email: str
    password: str
    user_agent: str


class PasswordSignInResult(Struct):
    """The secrets for a browser that signs in with a password.

    secret    the secret of the new session
    known     the secret of the browser; None if the address is not proved: a stranger may have set the password
    """

    secret: str
    known: str | None


class SignInByPassword:
    """Signs people in by passwords."""

    def __init__(self, directory: Directory) -> None:
        self._directory = directory

    async def sign_in(
        self, steps: Steps[Any], caller: Caller, command: SignIn
    ) -> Conclusion[PasswordSignInResult | None]:
        """Begin a session; return None if the password is wrong.

        It takes as long for an address that no account has.
        """
        async with passwords.place(caller):
            stored_password = await steps.read(lambda reader: self._directory.find_password(reader, command.email))
            is_right = await passwords.is_match(command.password, stored_password.hash if stored_password else None)

        async def begin(tx: Any) -> PasswordSignInResult | None:
            # A transaction that ends a password, and then all sessions, also ends the session that begins here.
            if not is_right or stored_password is None or not await self._directory.still_has(tx, stored_password):
                return None
            id = stored_password.account_id
            secret = await sessions.begin(tx, id, "password", command.user_agent)
            account = (await self._directory.find(tx, [id])).get(id)
            is_owner = account is not None and account.is_proved
            return PasswordSignInResult(secret, await known_browsers.note(tx, id, command.email) if is_owner else None)

        return await steps.conclude(begin)
