"""What people and programs read of a page."""

import json
import re
from html import unescape
from typing import Any

import httpx2


def text(page: httpx2.Response) -> str:
    """What people read, in one line."""
    shown = re.sub(r"<(style|script)\b.*?</\1>|<[^>]+>", " ", page.text, flags=re.DOTALL)
    return " ".join(unescape(shown).split())


def structured(page: httpx2.Response) -> dict[str, Any]:
    """The structured data in a page."""
    (found,) = re.findall(r'<script type="application/ld\+json">(.*?)</script>', page.text, flags=re.DOTALL)
    return json.loads(found)


def meta(page: httpx2.Response, name: str) -> str:
    """What a `meta` element says."""
    (found,) = re.findall(rf'<meta (?:name|property)="{name}" content="([^"]*)">', page.text)
    return unescape(found)
