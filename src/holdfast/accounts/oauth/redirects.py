"""Redirect addresses of clients: which a client may have, which of them a request names, and where they lead.

An address must be the same to the letter. Only the port may be another one if it leads to the person's own computer:
a program there takes whichever is free (RFC 8252, section 7.3).
"""

import re
from collections.abc import Sequence
from typing import Literal, NamedTuple
from urllib.parse import urlencode, urlsplit

LONGEST = 500

_ADDRESS = re.compile(r"(?P<scheme>[a-z][a-z0-9+.-]*):[A-Za-z0-9._~:/?\[\]@!$&'()*+,;=%-]+")
"""An address in the characters of RFC 3986, without a fragment, its scheme in lower case."""

_LOOPBACK = re.compile(r"http://(localhost|127\.0\.0\.1|\[::1\])(:[0-9]{1,5})?(?=[/?]|$)")

_OF_BROWSERS = frozenset(
    """
    about blob chrome chrome-extension content data devtools feed file filesystem ftp http intent jar javascript
    livescript mailto mhtml moz-extension ms-settings res resource sms smb ssh tel vbscript view-source ws wss
    """.split()
)
"""Schemes that no app has for itself."""


class Target(NamedTuple):
    """Where an address leads, as people are told: to a site, to this computer, or to an app; and its name."""

    kind: Literal["site", "computer", "app"]
    name: str


def is_acceptable(address: str) -> bool:
    """Whether a client may have this redirect address."""
    found = _ADDRESS.fullmatch(address)
    if found is None or len(address) > LONGEST:
        return False
    try:
        parts = urlsplit(address)
        port = parts.port
    except ValueError:
        return False
    if "@" in parts.netloc or port == 0:
        return False
    if parts.scheme == "https":
        return bool(parts.hostname)
    if _LOOPBACK.match(address):
        return True
    # An app's scheme is one of its own: com.example.app:/done, or exampleapp://done.
    return parts.scheme not in _OF_BROWSERS and bool("." in parts.scheme or parts.netloc)


def named(registered: Sequence[str], asked: str | None) -> str | None:
    """The redirect address that a request names, if it is one of the client's. It may be left out if there is one."""
    if asked is None:
        return registered[0] if len(registered) == 1 else None
    if not is_acceptable(asked):
        return None
    return asked if any(_is_same(each, asked) for each in registered) else None


def _is_same(registered: str, asked: str) -> bool:
    return registered == asked or bool(
        _LOOPBACK.match(asked) and _LOOPBACK.sub(r"http://\1", registered) == _LOOPBACK.sub(r"http://\1", asked)
    )


def target(address: str) -> Target:
    """Where an address leads."""
    parts = urlsplit(address)
    if parts.scheme == "https":
        return Target("site", parts.netloc.lower())
    if parts.scheme == "http":
        return Target("computer", parts.netloc)
    return Target("app", parts.scheme)


def source(address: str) -> str:
    """What a policy must name, so that a form may lead there (Content Security Policy, `form-action`).

    Browsers check every redirect that follows too, and clients lead on to pages of theirs: any https address may come.
    """
    parts = urlsplit(address)
    if parts.scheme == "https":
        return "https:"
    if parts.scheme == "http" and "[" not in parts.netloc:
        return f"https: http://{parts.netloc}"
    return f"https: {parts.scheme}:"  # a policy cannot name an IPv6 address


def answered(address: str, **parameters: str | None) -> str:
    """A redirect address with the parameters of an answer added to its query."""
    separator = "?" if "?" not in address else "" if address.endswith(("?", "&")) else "&"
    return f"{address}{separator}{urlencode({name: value for name, value in parameters.items() if value is not None})}"
