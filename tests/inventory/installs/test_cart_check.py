"""The cart check needs more than the app must have: merchants grant it when they want it, and withdraw it."""

from urllib.parse import parse_qs, urlsplit

from holdfast.inventory.shopify.domains import REQUIRED
from tests.helpers.platform_shop import DOMAIN, PlatformScene


async def requested_scopes(scene: PlatformScene, query: str) -> list[str]:
    """What the merchant is asked to grant."""
    begun = await scene.begin(query)
    assert begun.status_code == 302
    return parse_qs(urlsplit(begun.headers["location"]).query)["scope"][0].split(",")


async def test_the_scope_of_the_cart_check_is_requested_only_on_demand(scene: PlatformScene) -> None:
    assert await requested_scopes(scene, f"shop={DOMAIN}") == [*REQUIRED]
    assert await requested_scopes(scene, f"shop={DOMAIN}&cart_check=1") == [*REQUIRED, "write_products"]


async def test_the_scope_of_the_cart_check_stays_granted_until_it_is_withdrawn(scene: PlatformScene) -> None:
    await scene.come_back(await scene.agree(await scene.begin(f"shop={DOMAIN}&cart_check=1")))
    assert "write_products" in (await scene.row("scopes"))[0]

    assert await requested_scopes(scene, f"shop={DOMAIN}") == [*REQUIRED, "write_products"]
    assert await requested_scopes(scene, f"shop={DOMAIN}&cart_check=0") == [*REQUIRED]
    await scene.come_back(await scene.agree(await scene.begin(f"shop={DOMAIN}&cart_check=0")))

    assert await requested_scopes(scene, f"shop={DOMAIN}") == [*REQUIRED]


async def test_an_unknown_value_of_cart_check_is_refused(scene: PlatformScene) -> None:
    answer = await scene.begin(f"shop={DOMAIN}&cart_check=yes")

    assert answer.status_code == 422
