"""Web addresses."""

from urllib.parse import urlsplit


def is_web_address(text: str) -> bool:
    """Whether a text is an absolute http or https address to which a browser can be redirected."""
    if any(character <= " " or character in "\x7f\\" for character in text):
        return False
    try:
        parts = urlsplit(text)
        return (
            parts.scheme in {"http", "https"} and bool(parts.hostname) and "@" not in parts.netloc and parts.port != 0
        )
    except ValueError:
        return False


def is_same_address(text: str, address: str) -> bool:
    """Whether a text is a web address, but for capitals in its scheme and host and for slashes at its end."""
    scheme, separator, rest = text.partition("://")
    host, slash, path = rest.partition("/")
    return f"{scheme.lower()}{separator}{host.lower()}{slash}{path}".rstrip("/") == address.rstrip("/")
