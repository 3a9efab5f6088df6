"""Redirects, and links to other languages, keep the query parameters that a site knows by name: all that it reads."""

import re
from pathlib import Path

import pytest

from holdfast import accounts
from holdfast.events.pages.registration.own_registration_pages import RECEIPT
from holdfast.events.queues.pages.room_pages import RECEIPT as ROOM_RECEIPT
from holdfast.events.site import SITE as EVENTS
from holdfast.inventory.site import SITE as INVENTORY
from holdfast.kit.pages.site import Site

SOURCE = accounts.FOLDER.parent

READ = re.compile(
    r'(?:read_query\(request(?:\.query)?\)|\bquery)\.get\("(\w+)"|"(\w+)" in read_query\(request\.query\)'
)


PROOFS = {"code", "exp", "signature", "state", "timestamp"}
"""Parameters that are signed, or belong to such: an answer never repeats them (`kit/http/answers.py`)."""


@pytest.mark.parametrize(("folder", "site"), [("events", EVENTS), ("inventory", INVENTORY), ("accounts", EVENTS)])
def test_every_parameter_read_by_a_page_is_known_to_its_site(folder: str, site: Site) -> None:
    read = {
        name
        for file in Path(SOURCE / folder).rglob("*.py")
        for names in READ.findall(file.read_text(encoding="utf-8"))
        for name in names
        if name
    }

    assert read - PROOFS - site.parameters == set()
    assert read


def test_the_events_site_knows_the_parameter_that_asks_for_a_receipt() -> None:
    assert {RECEIPT, ROOM_RECEIPT} <= EVENTS.parameters
