"""A secret is rotated while the old one is still accepted; after that the old one is needed no more."""

from tests.test_cli import holdfast

FIRST, SECOND = "1" * 32, "2" * 32
DOMAIN = "ada.myshopify.com"


def test_the_key_of_a_shop_outlives_the_secret_it_was_sealed_with(inventory_url: str) -> None:
    def inventory(*words: str, secret: str, old: str = "") -> str:
        settings = {"INVENTORY_DATABASE_URL": inventory_url, "INVENTORY_SECRET_KEY": secret}
        done = holdfast("inventory", *words, **settings, INVENTORY_OLD_SECRET_KEY=old)
        return done.stdout + (done.stderr if done.returncode else "")

    key = inventory("shop", "add", DOMAIN, secret=FIRST).splitlines()[-1]

    assert "another secret key" in inventory("shop", "key", DOMAIN, secret=SECOND)
    assert inventory("shop", "key", DOMAIN, secret=SECOND, old=FIRST) == f"{key}\n"
    assert "api_keys: 0 sealed again, 1 left that another secret sealed." in inventory("reseal", secret=SECOND)
    for _ in range(2):
        assert "api_keys: 1 sealed again." in inventory("reseal", secret=SECOND, old=FIRST)
    assert inventory("shop", "key", DOMAIN, secret=SECOND) == f"{key}\n"
