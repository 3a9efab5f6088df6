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
