"""The names of a browser and its system, as people know them, from the User-Agent that it sends."""

import re
from typing import NamedTuple

# A browser also names those that it is compatible with, so the order matters.
_BROWSERS = (
    ("Edge", re.compile(r"\bEdg(?:e|A|iOS)?/")),
    ("Opera", re.compile(r"\bOPR/|\bOpera\b")),
    ("Samsung Internet", re.compile(r"\bSamsungBrowser/")),
    ("Firefox", re.compile(r"\b(?:Firefox|FxiOS)/")),
    ("Chrome", re.compile(r"\b(?:Chrome|CriOS|HeadlessChrome|Chromium)/")),
    ("Safari", re.compile(r"\bVersion/\S+ .*\bSafari/")),
)
_SYSTEMS = (
    ("iPhone", re.compile(r"\biPhone\b")),
    ("iPad", re.compile(r"\biPad\b")),
    ("Android", re.compile(r"\bAndroid\b")),
    ("Windows", re.compile(r"\bWindows\b")),
    ("macOS", re.compile(r"\bMacintosh\b")),
    ("ChromeOS", re.compile(r"\bCrOS\b")),
    ("Linux", re.compile(r"\bLinux\b")),
)


class BrowserName(NamedTuple):
    """A browser and its system. Each is empty if it is unknown."""

    browser: str
    system: str


def browser_name(user_agent: str) -> BrowserName:
    """The names in a User-Agent, such as Firefox and Windows."""
    return BrowserName(
        next((name for name, pattern in _BROWSERS if pattern.search(user_agent)), ""),
        next((name for name, pattern in _SYSTEMS if pattern.search(user_agent)), ""),
    )
