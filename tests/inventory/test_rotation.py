"""A secret is rotated while the old one is still accepted; after that the old one is needed no more."""

from tests.helpers.command_line import run_holdfast, run_holdfast_in
from tests.helpers.data_directories import scratch_directory

FIRST, SECOND = "1" * 32, "2" * 32
DOMAIN = "ada.myshopify.com"


def test_the_key_of_a_shop_outlives_the_secret_it_was_sealed_with(inventory_url: str) -> None:
    def inventory(*words: str, secret: str, old: str = "") -> str:
        settings = {"INVENTORY_DATABASE_URL": inventory_url, "INVENTORY_SECRET_KEY": secret}
        done = run_holdfast("inventory", *words, **settings, INVENTORY_OLD_SECRET_KEY=old)
        return done.stdout + (done.stderr if done.returncode else "")

    key = inventory("shop", "add", DOMAIN, secret=FIRST).splitlines()[-1]

    refusal = inventory("shop", "key", DOMAIN, secret=SECOND)
    assert "another secret key. Set INVENTORY_SECRET_KEY to that key; or set INVENTORY_OLD_SECRET_KEY to it" in refusal
    assert inventory("shop", "key", DOMAIN, secret=SECOND, old=FIRST) == f"{key}\n"
    assert "api_keys: 0 sealed again, 1 left that another secret sealed." in inventory("reseal", secret=SECOND)
    for _ in range(2):
        assert "api_keys: 1 sealed again." in inventory("reseal", secret=SECOND, old=FIRST)
    assert inventory("shop", "key", DOMAIN, secret=SECOND) == f"{key}\n"


def test_a_secret_in_the_data_directory_is_rotated_by_deleting_its_file() -> None:
    directory = scratch_directory()

    def inventory(*words: str, old: str = "") -> str:
        return run_holdfast_in(directory, "inventory", *words, INVENTORY_OLD_SECRET_KEY=old).stdout

    key = inventory("shop", "add", DOMAIN).splitlines()[-1]
    file = directory / ".holdfast" / "inventory.secret"
    old = file.read_text()
    file.unlink()

    assert "api_keys: 1 sealed again." in inventory("reseal", old=old)
    assert file.read_text() != old
    assert inventory("shop", "key", DOMAIN) == f"{key}\n"
