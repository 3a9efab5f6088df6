"""Signed links to one registration."""

from pathlib import Path

import pytest

from holdfast.events.registrations.links import (
    OUTCOME_PAGE,
    OWN_PAGE,
    Link,
    LinkKind,
    outcome_path,
    own_url,
    read,
    write,
)
from holdfast.kit.security.service_secret import Secret
from tests.helpers.events_service import unlimited

SECRET = Secret(b"x" * 32)
LINK = Link(7, "abcdefg2", 12)


@pytest.mark.parametrize("kind", [OWN_PAGE, OUTCOME_PAGE])
def test_a_link_says_which_registration_it_is_for(kind: LinkKind):
    assert read(SECRET, kind, write(SECRET, kind, LINK)) == LINK


def test_the_address_of_an_own_page_is_its_link_behind_the_base_address(tmp_path: Path):
    address = own_url(unlimited("", tmp_path), SECRET, *LINK)
    assert address == f"http://events.test/registrations/{write(SECRET, OWN_PAGE, LINK)}"


def test_a_link_of_an_outcome_does_not_open_the_own_page():
    assert read(SECRET, OWN_PAGE, outcome_path(SECRET, LINK).split("/")[2]) is None
    assert read(SECRET, OUTCOME_PAGE, write(SECRET, OWN_PAGE, LINK)) is None


@pytest.mark.parametrize(
    "text",
    [
        "",
        "7-abcdefg2-12",
        "7-abcdefg2-12-",
        f"7-abcdefg2-12-{'0' * 32}",
        f"7-abcdefg2-12-{'0' * 64}",
        "7-ABCDEFG2-12-" + "0" * 32,
        "\u0667-abcdefg2-12-" + "0" * 32,
    ],
)
def test_a_guessed_link_is_not_valid(text: str):
    assert read(SECRET, OWN_PAGE, text) is None


def test_a_link_that_was_changed_is_not_valid():
    written = write(SECRET, OWN_PAGE, LINK)
    assert read(SECRET, OWN_PAGE, written.replace("7-", "8-", 1)) is None
    assert read(SECRET, OWN_PAGE, written.replace("-12-", "-13-")) is None
    assert read(SECRET, OWN_PAGE, written.replace("-12-", "-012-")) is None
    assert read(SECRET, OWN_PAGE, written[:-1]) is None
    assert read(SECRET, OWN_PAGE, written + "\n") is None


def test_a_link_stays_valid_when_the_secret_is_rotated():
    rotated = Secret(b"y" * 32, SECRET.value)
    assert read(rotated, OWN_PAGE, write(SECRET, OWN_PAGE, LINK)) == LINK
    assert read(Secret(b"y" * 32), OWN_PAGE, write(SECRET, OWN_PAGE, LINK)) is None
