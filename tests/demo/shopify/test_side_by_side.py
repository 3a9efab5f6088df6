"""The page that shows one stock above the pages of its shop."""

import re

from holdfast_demo.shopify.orders import SaleLine
from holdfast_demo.shopify.pages.side_by_side import MAX_FOLLOW_SECONDS, stage_stock
from tests.demo.shopify.stage import DOMAIN, PlatformStage, run_platform

PAGE = f"/{DOMAIN}/side-by-side"


async def test_a_shop_of_the_demo_promises_more_than_is_on_its_shelf() -> None:
    async with run_platform() as stage:
        stage.double.begin(DOMAIN, with_more=True)
        page = await stage.http.get(PAGE)
        before = stage_stock(stage.double.state, DOMAIN, {})
        for _ in range(5):
            stage.double.sell(DOMAIN, SaleLine(1012, 1))
        after = stage_stock(stage.double.state, DOMAIN, {})
        oversold = await stage.http.get(PAGE)

    assert (before.shelf, before.promised, before.is_shared) == (50, 182, False)
    assert [pack.units for pack in before.packs] == [50, 60, 72]
    assert page.text.count(">Install Holdfast<") == 1
    assert re.findall(r'<iframe src="[^"]*" name="(\w+)"', page.text) == ["storefront", "shop"]
    assert (after.shelf, after.promised) == (-10, 122)
    assert "10 jars are sold that were never there" in oversold.text


async def test_units_that_came_back_are_on_the_shelf_again() -> None:
    async with run_platform() as stage:
        stage.double.begin(DOMAIN)
        order = stage.double.sell(DOMAIN, SaleLine(1006, 2), SaleLine(1001, 1))
        sold = stage_stock(stage.double.state, DOMAIN, {}).shelf
        stage.double.cancel(DOMAIN, order.id)
        back = stage_stock(stage.double.state, DOMAIN, {}).shelf

    assert (sold, back) == (37, 50)


async def test_the_app_is_installed_beside_the_stock_and_shown_there() -> None:
    async with run_platform() as stage:
        stage.double.begin(DOMAIN)
        installed = await stage.http.post(PAGE)
        page = await stage.http.get(installed.headers["location"])
        missing = await stage.http.post("/other.myshopify.com/side-by-side")

    assert (installed.status_code, installed.headers["location"], missing.status_code) == (303, PAGE, 404)
    assert "Holdfast is installed. Next, let the packs share a pool." in page.text
    assert ">Install Holdfast<" not in page.text
    assert re.findall(r'<iframe src="[^"]*" name="(\w+)"', page.text) == ["storefront", "shop", "app"]


async def test_the_packs_of_a_pool_are_one_stock_even_if_a_number_was_changed_by_hand(stage: PlatformStage) -> None:
    stage.live = {variant.gid: number for variant, number in zip(stage.variants, (50, 8, 4, 0, 0), strict=False)}
    one_stock = "Honey jars: one stock, three ways to buy"

    pooled = await stage.http.get(PAGE)
    stage.double.count(DOMAIN, stage.variants[0].id, 70)
    changed = await stage.http.get(PAGE)
    del stage.live[stage.variants[1].gid]
    unlinked = await stage.http.get(PAGE)

    assert [one_stock in page.text for page in (pooled, changed, unlinked)] == [True, True, False]
    assert [page.text.count("the pool has") for page in (pooled, changed)] == [0, 1]
    assert "the pool has 50" in changed.text
    assert "<strong>50</strong> on the shelf" in changed.text
    assert "let the packs share a pool" in unlinked.text


async def test_a_number_that_stays_different_is_explained_and_leads_to_the_comparison(stage: PlatformStage) -> None:
    stage.live = {variant.gid: number for variant, number in zip(stage.variants, (50, 8, 4, 0, 0), strict=False)}
    stage.double.count(DOMAIN, stage.variants[0].id, 70)

    just_changed = await stage.http.get(PAGE)
    stage.double.state.clock.advance(MAX_FOLLOW_SECONDS + 1)
    later = await stage.http.get(PAGE)

    explained = [f"/{DOMAIN}/admin/apps/holdfast/console/sync" in page.text for page in (just_changed, later)]
    assert explained == [False, True]


async def test_a_shop_without_products_has_no_stock_to_show() -> None:
    async with run_platform() as stage:
        stage.double.open(DOMAIN)
        page = await stage.http.get(PAGE)
        missing = await stage.http.get("/other.myshopify.com/side-by-side")

    assert "This shop has no product yet." in page.text
    assert missing.status_code == 404


async def test_a_page_in_a_frame_leaves_out_what_stands_above_what_moves(stage: PlatformStage) -> None:
    alone = await stage.http.get(f"/{DOMAIN}")
    framed = await stage.http.get(f"/{DOMAIN}", headers={"Sec-Fetch-Dest": "iframe"})

    assert ['<body class="in-frame"' in page.text for page in (alone, framed)] == [False, True]
