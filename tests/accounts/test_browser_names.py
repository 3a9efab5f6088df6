"""A browser is named as people know it."""

import pytest

from holdfast.accounts.signin.pages import browser_name

MOZILLA = "Mozilla/5.0"
WEBKIT = "AppleWebKit/537.36 (KHTML, like Gecko)"


@pytest.mark.parametrize(
    ("user_agent", "name"),
    [
        (f"{MOZILLA} (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0", ("Firefox", "Linux")),
        (f"{MOZILLA} (Windows NT 10.0; Win64; x64) {WEBKIT} Chrome/140.0.0.0 Safari/537.36", ("Chrome", "Windows")),
        (f"{MOZILLA} (Windows NT 10.0) {WEBKIT} Chrome/140.0 Safari/537.36 Edg/140.0", ("Edge", "Windows")),
        (f"{MOZILLA} (Macintosh; Intel Mac OS X 10_15) {WEBKIT} Version/18.0 Safari/605.1", ("Safari", "macOS")),
        (
            f"{MOZILLA} (iPhone; CPU iPhone OS 18_0 like Mac OS X) {WEBKIT} CriOS/140.0 Safari/604.1",
            ("Chrome", "iPhone"),
        ),
        (f"{MOZILLA} (Linux; Android 15) {WEBKIT} Chrome/140.0 Mobile Safari/537.36", ("Chrome", "Android")),
        ("python-httpx2/1.0", ("", "")),
        ("", ("", "")),
    ],
)
def test_the_user_agent_of_a_known_browser_names_it_and_its_system(user_agent: str, name: tuple[str, str]) -> None:
    assert browser_name(user_agent) == name
