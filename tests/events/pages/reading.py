"""What people and programs read of a page."""

import json
import re
from html import unescape
from typing import Any

import httpx2


def readable_text(page: httpx2.Response) -> str:
    """What people read, in one line, with plain hyphens."""
    stripped = re.sub(r"<(style|script)\b.*?</\1>|<[^>]+>", " ", page.text, flags=re.DOTALL)
    return " ".join(unescape(stripped).replace("\N{NON-BREAKING HYPHEN}", "-").split())


def structured_data(page: httpx2.Response) -> dict[str, Any]:
    """The structured data in a page."""
    (content,) = re.findall(r'<script type="application/ld\+json">(.*?)</script>', page.text, flags=re.DOTALL)
    return json.loads(content)


def meta(page: httpx2.Response, name: str) -> str:
    """What a `meta` element says."""
    (content,) = re.findall(rf'<meta (?:name|property)="{name}" content="([^"]*)">', page.text)
    return unescape(content)


def calendar_properties(file: httpx2.Response) -> dict[str, str]:
    """The properties of a calendar file with one event."""
    lines = file.text.replace("\r\n ", "").split("\r\n")
    return {name: value for name, _, value in (line.partition(":") for line in lines)}


def preview_image(page: str) -> str | None:
    match = re.search(r'<meta property="og:image" content="([^"]+)">', page)
    return match and match[1]
