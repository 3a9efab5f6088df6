"""The OAuth state of an install: a random text that goes to the platform and comes back with the merchant.

The browser keeps it in a cookie too, so that an attacker cannot lead another browser into the end of an install. The
cookie is bound to the shop and to a minute, and signed with a key that signs nothing else.
"""

import hmac
import re
import secrets

from holdfast.kit.http.handler import Header
from holdfast.kit.security.secrets import Secret

STATE_LIFETIME_SECONDS = 60
"""Seconds in which the merchant has to agree."""

PATH = "/auth/install"

_SHAPE = re.compile(r"([A-Za-z0-9_-]{43})\.([0-9]{1,12})\.([0-9a-f]{64})")


class InstallStates:
    """Makes and verifies states.

    base_url    the address of the service: with https, the cookie is sent over TLS only
    """

    def __init__(self, secret: Secret, base_url: str) -> None:
        self._signer = secret.signer("install state")
        self._secure = base_url.startswith("https:")
        self.cookie_name = "__Secure-install" if self._secure else "install"

    def begin(self, shop: str, now: float) -> tuple[str, Header]:
        """Return a new state for a shop, and the header that sets the cookie."""
        state, until = secrets.token_urlsafe(32), int(now) + STATE_LIFETIME_SECONDS
        return state, self._cookie(
            f"{state}.{until}.{self._signer.sign(f'{shop} {state} {until}')}", STATE_LIFETIME_SECONDS
        )

    def accepts(self, shop: str, state: str, cookie: str, now: float) -> bool:
        """Return whether the browser with this cookie began this install, with this state, within the minute."""
        parts = _SHAPE.fullmatch(cookie)
        if parts is None or not hmac.compare_digest(parts[1].encode(), state.encode()):
            return False
        return self._signer.accepts(f"{shop} {state} {parts[2]}", parts[3]) and now <= int(parts[2])

    def end(self) -> Header:
        """Return the header that removes the cookie."""
        return self._cookie("", 0)

    def _cookie(self, value: str, seconds: int) -> Header:
        secure = "; Secure" if self._secure else ""
        text = f"{self.cookie_name}={value}; Path={PATH}; Max-Age={seconds}; HttpOnly; SameSite=Lax{secure}"
        return b"set-cookie", text.encode()
