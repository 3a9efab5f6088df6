"""The rules for redirect addresses.

The address in a request must be exactly a registered one, unless it leads to the person's own computer. Then the port
may differ, since a program there takes any free port (RFC 8252, section 7.3), and the path may have one more segment:
Codex adds an id of the server to it, which its metadata document cannot name. Whatever listens on that computer could
have the registered path, too.
"""

import re
from collections.abc import Sequence
from typing import Literal, NamedTuple
from urllib.parse import urlencode, urlsplit

MAX_ADDRESS_CHARS = 500

_ADDRESS = re.compile(r"(?P<scheme>[a-z][a-z0-9+.-]*):[A-Za-z0-9._~:/?\[\]@!$&'()*+,;=%-]+")
"""An address in the characters of RFC 3986, without a fragment, its scheme in lower case."""

_LOOPBACK = re.compile(r"http://(localhost|127\.0\.0\.1|\[::1\])(:[0-9]{1,5})?(?=[/?]|$)")

_SEGMENT = re.compile(r"/(?!\.{1,2}$)[A-Za-z0-9._~-]{1,100}")
"""One more segment of a path."""

_APPS = frozenset(
    """
    antigravity claude cursor goose jetbrains kiro raycast trae vscode vscode-insiders vscodium warp windsurf zed
    """.split()
)
"""Schemes without a dot that are known to belong to one app."""


_SYSTEMS = ("microsoft.", "windows.", "x-apple.")
"""The prefixes of schemes with a dot that belong to the operating system."""


def _is_of_app(scheme: str) -> bool:
    """Whether a scheme belongs to one app: a reversed domain name, or a known scheme.

    RFC 8252, section 7.1, requires the dot. Any other scheme may belong to the operating system: `search-ms:` and
    `ms-msdt:` run programs of Windows.
    """
    return scheme in _APPS or ("." in scheme and not scheme.startswith(_SYSTEMS))


class RedirectTarget(NamedTuple):
    """Where an address leads, as people see it: to a site, to this computer, or to an app; and its name."""

    kind: Literal["site", "computer", "app"]
    name: str


def is_acceptable(address: str) -> bool:
    """Whether a client may have this redirect address."""
    match = _ADDRESS.fullmatch(address)
    if match is None or len(address) > MAX_ADDRESS_CHARS:
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
    return _is_of_app(parts.scheme)


def registered_address(registered_addresses: Sequence[str], redirect_uri: str | None) -> str | None:
    """The redirect address of a request, if the client has it. The only address of a client may be left out.

    Returns None for an address that was registered when the rules were weaker, and is not acceptable any more.
    """
    if redirect_uri is None and len(registered_addresses) == 1:
        redirect_uri = registered_addresses[0]
    if redirect_uri is None or not is_acceptable(redirect_uri):
        return None
    return redirect_uri if any(_is_same(address, redirect_uri) for address in registered_addresses) else None


def _is_same(registered_uri: str, redirect_uri: str) -> bool:
    if registered_uri == redirect_uri:
        return True
    if not (_LOOPBACK.match(redirect_uri) and _LOOPBACK.match(registered_uri)):
        return False
    expected_uri, requested_uri = (_LOOPBACK.sub(r"http://\1", uri) for uri in (registered_uri, redirect_uri))
    return requested_uri == expected_uri or bool(
        "?" not in expected_uri and _SEGMENT.fullmatch(requested_uri.removeprefix(expected_uri.removesuffix("/")))
    )


def redirect_target(address: str) -> RedirectTarget:
    """Where an address leads."""
    parts = urlsplit(address)
    if parts.scheme == "https":
        return RedirectTarget("site", parts.netloc.lower())
    if parts.scheme == "http":
        return RedirectTarget("computer", parts.netloc)
    return RedirectTarget("app", parts.scheme)


def form_action_source(address: str) -> str:
    """The sources that allow a form to lead there (Content Security Policy, `form-action`).

    Browsers also check every redirect that follows, and clients redirect to further pages: any https address may come.
    """
    parts = urlsplit(address)
    if parts.scheme == "https":
        return "https:"
    if parts.scheme == "http" and "[" not in parts.netloc:
        return f"https: http://{parts.netloc}"
    return f"https: {parts.scheme}:"  # a policy cannot name an IPv6 address


def with_parameters(address: str, **parameters: str | None) -> str:
    """A redirect address with the parameters of an answer added to its query."""
    separator = "?" if "?" not in address else "" if address.endswith(("?", "&")) else "&"
    return f"{address}{separator}{urlencode({name: value for name, value in parameters.items() if value is not None})}"
