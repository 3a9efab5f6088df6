"""Secrets for cookies: a browser that sends one is the browser that got it."""

import re
import secrets

_SECRET = re.compile(r"[A-Za-z0-9_-]{43}")


def new_cookie_secret() -> str:
    """A random secret of 256 bits for a cookie."""
    return secrets.token_urlsafe(32)


def is_cookie_secret(text: str | None) -> bool:
    """Whether a text has the form of a secret for a cookie. What a browser sends may be anything."""
    return text is not None and _SECRET.fullmatch(text) is not None
