"""Invalid settings of the platform are refused at start, with what would be right."""

import pytest
from pydantic import ValidationError

from holdfast.inventory.settings import Settings


@pytest.mark.parametrize(
    "address",
    [
        "",
        "https://shops.example.com",
        "{shop}",
        "ftp://{shop}",
        "https://{shop}/{shop}",
        "https://{shop} ",
        "https://@{shop}",
    ],
)
def test_an_address_of_the_platform_without_a_place_for_the_shop_is_refused(address: str) -> None:
    with pytest.raises(ValidationError, match=r"must be an http or https address with \{shop\} in it once"):
        Settings(platform_address=address)  # pyright: ignore[reportCallIssue] - the rest has defaults


def test_an_address_of_the_platform_loses_its_trailing_slash() -> None:
    settings = Settings(platform_address="http://127.0.0.1:8003/{shop}/")  # pyright: ignore[reportCallIssue]

    assert settings.platform_address == "http://127.0.0.1:8003/{shop}"


@pytest.mark.parametrize("version", ["", "2026", "2026-11", "2026-10/../..", "latest"])
def test_a_version_of_the_api_that_is_no_quarter_is_refused(version: str) -> None:
    with pytest.raises(ValidationError, match="must be a quarter such as 2026-10, or unstable"):
        Settings(platform_api_version=version)  # pyright: ignore[reportCallIssue]


@pytest.mark.parametrize("blank", [" ", "\n", "\t "])
def test_a_blank_client_secret_is_ignored(blank: str) -> None:
    """It could be guessed, and an attacker who guesses it can forge every message of the platform."""
    settings = Settings(client_secret="s" * 38 + blank, old_client_secret=blank)  # pyright: ignore[reportCallIssue]

    assert (settings.client_secret, settings.old_client_secret) == ("s" * 38, "")
