"""Signing in to the console inside the platform's admin, and which frames may show it."""

import html
import re
import time
from typing import Any

import httpx2

from holdfast.accounts.sessions import PLATFORM_HOURS
from holdfast.inventory.settings import Settings
from holdfast.inventory.shops import operations as shops
from tests.helpers.events_service import eventually
from tests.helpers.form_browser import main_text
from tests.helpers.inventory_service import running_inventory
from tests.helpers.platform_shop import DOMAIN, PlatformSource, open_platform_scene
from tests.helpers.platform_webhooks import deliver, handle
from tests.inventory.console.merchant_scene import FOREIGN, SAME_SITE, Admin, hidden_field, in_the_admin

OTHER = "ben.myshopify.com"
NOT_IN = "One moment, please"


async def test_a_session_token_opens_the_console_and_is_removed_from_the_address(admin: Admin) -> None:
    begun = await admin.load("/console")

    assert (begun.status_code, begun.headers["location"]) == (303, f"/console?shop={DOMAIN}")
    page = await admin.http.get(begun.headers["location"])
    assert page.status_code == 200
    assert "Pools You have no pools yet." in main_text(page)
    assert await admin.inventory.sql("select staff_id, email from merchants") == [("1", None)]
    assert await admin.inventory.sql("select way from sessions") == [("platform",)]


async def test_a_shop_that_only_the_platform_knows_of_is_connected_when_the_app_is_opened(
    admin: Admin,
) -> None:
    assert await admin.inventory.sql("select from shops") == []

    await admin.open()

    assert await admin.scene.row("uninstalled_at, broken") == (None, None)
    assert await admin.scene.row("count(*)", "platform_tokens") == (1,)


async def test_the_session_cookie_is_partitioned_to_frames_of_the_admin(admin: Admin) -> None:
    cookie = (await admin.load()).headers["set-cookie"]

    name, _, rest = cookie.partition("=")
    assert name == f"__Host-shop-{DOMAIN}"
    assert rest.split("; ")[1:] == [
        "Path=/",
        f"Max-Age={PLATFORM_HOURS * 3600}",
        "HttpOnly",
        "Secure",
        "SameSite=None",
        "Partitioned",
    ]


async def test_the_session_cookie_without_https_is_for_the_same_host(settings: Settings) -> None:
    async with open_platform_scene(settings, "http://inventory.test") as scene:
        scene.platform.install(DOMAIN)
        query = {"shop": DOMAIN, "id_token": scene.platform.oauth.session_token(DOMAIN)}

        begun = await scene.inventory.http.get("/console", params=query)

        assert begun.headers["set-cookie"].startswith(f"shop-{DOMAIN}=")
        assert begun.headers["set-cookie"].endswith("; HttpOnly; SameSite=Lax")


async def test_every_answer_may_be_framed_by_the_admin_of_its_shop_only(admin: Admin) -> None:
    address = admin.scene.platform.address

    answers = [
        await admin.load(),  # the redirect
        await admin.get(),  # a page
        await admin.load(token="forged"),
        await admin.get("/console?cursor=no"),  # an error
        await admin.http.post(f"/console/enter?shop={DOMAIN}", data={}, headers=FOREIGN),
        await Admin(admin.scene).get(),  # a merchant who is not signed in
    ]

    assert {admin.policy(answer) for answer in answers} == {address}
    assert [answer for answer in answers if "x-frame-options" in answer.headers] == []


async def test_an_error_in_the_admin_keeps_its_look_its_navigation_and_a_way_back(admin: Admin) -> None:
    await admin.open()
    page = await admin.get()

    for path, status in (("/console/nothing", 404), ("/console/pools/999", 404), ("/console?cursor=no", 422)):
        error = await admin.get(path)

        assert error.status_code == status
        assert '<body class="console in-admin"' in error.text
        assert "<s-app-nav>" in error.text
        assert f'<a href="{admin.address_of("/console/holds")}"' in error.text
        assert f'<a class="button" href="{admin.address_of("/console")}">Go to the start page</a>' in error.text
        assert bridge(error) == bridge(page)


def bridge(page: httpx2.Response) -> tuple[list[str], str]:
    """The scripts of a page inside the admin, and where they may come from."""
    policy = page.headers["content-security-policy"]
    scripts = re.findall(r'<script src="(http[^"]*)"', page.text)
    assert scripts
    return scripts, policy.partition("script-src")[2].partition(";")[0]


async def test_answers_at_the_real_platform_may_be_framed_by_both_addresses_of_the_admin(admin: Admin) -> None:
    settings = admin.inventory.settings.model_copy(update={"platform_address": "https://{shop}"})
    async with running_inventory(settings) as inventory:
        answer = await inventory.http.get(f"/console?shop={DOMAIN}")

    assert admin.policy(answer) == f"https://{DOMAIN} https://admin.shopify.com"
    assert "script-src 'self' https://cdn.shopify.com;" in answer.headers["content-security-policy"]


async def test_a_page_that_names_no_shop_is_shown_in_no_frame(admin: Admin) -> None:
    await admin.open()

    for query in ("", "?shop=", "?shop=evil.example", f"?shop={DOMAIN}&shop={OTHER}", "?shop=%ff"):
        answer = await admin.http.get(f"/console{query}")

        assert answer.status_code == 303, query  # to sign in: the session is that of a frame
        assert admin.policy(answer) == "'none'"
        assert answer.headers["x-frame-options"] == "DENY"


WRONG: list[dict[str, Any]] = [
    {"aud": "another app"},
    {"iss": f"https://{OTHER}/admin"},
    {"iss": f"https://{OTHER}/admin", "dest": f"https://{OTHER}"},
    {"exp": 0},
    {"nbf": time.time() + 600},
    {"sub": ""},
    {"sub": "1" * 65},
    {"sub": "1\n2"},
]
"""Claims of session tokens that are signed, and not good."""


async def test_a_forged_or_foreign_session_token_does_not_sign_in(admin: Admin) -> None:
    unsigned = f"{admin.token().rpartition('.')[0]}.{'A' * 43}"

    for token in (unsigned, "forged", *(admin.token(**claims) for claims in WRONG)):
        loaded = await admin.load(token=token)
        sent = await admin.http.post(f"/console/enter?shop={DOMAIN}", data={"id_token": token}, headers=SAME_SITE)

        assert (loaded.status_code, loaded.headers["location"]) == (303, f"/console?shop={DOMAIN}")
        assert sent.status_code == 401
        assert "set-cookie" not in loaded.headers
        assert "set-cookie" not in sent.headers
        assert main_text(await admin.get()).startswith(NOT_IN)
    assert await admin.inventory.sql("select from sessions") == []


async def test_a_session_of_one_shop_opens_nothing_in_the_frame_of_another(admin: Admin) -> None:
    await admin.open()
    admin.scene.platform.open(OTHER)
    admin.scene.platform.install(OTHER)
    ben = await Admin(admin.scene, OTHER).open()
    [cookie] = list(admin.http.cookies.jar)

    in_bens = await admin.http.get(f"/console?shop={OTHER}")
    bens_word = await admin.load(token=ben.token())
    # A cookie that a merchant has moved by hand is one of another shop all the same.
    moved = await ben.inventory.http.get(
        f"/console?shop={OTHER}", headers={"cookie": f"__Host-shop-{OTHER}={cookie.value}"}
    )

    assert main_text(in_bens).startswith(NOT_IN)
    assert main_text(moved).startswith(NOT_IN)
    assert "set-cookie" not in bens_word.headers
    assert main_text(await admin.get()).startswith("Pools")
    assert main_text(await ben.get()).startswith("Pools")


async def test_a_page_without_a_cookie_loads_the_script_of_the_platform(admin: Admin) -> None:
    page = await admin.get("/console?cursor=abc")

    assert page.status_code == 401
    assert main_text(page).startswith(NOT_IN)
    assert f'<meta name="shopify-api-key" content="{admin.inventory.settings.client_id}">' in page.text
    assert re.search(r'<script src="https://cdn.shopify.com/shopifycloud/app-bridge.js"></script>', page.text)
    back = hidden_field(page, "return_to")
    assert back == f"/console?cursor=abc&shop={DOMAIN}"

    done = await admin.http.post(
        f"/console/enter?shop={DOMAIN}",
        data={"id_token": admin.token(), "return_to": f"/console?shop={DOMAIN}"},
        headers=SAME_SITE,
    )

    assert (done.status_code, done.headers["location"]) == (303, f"/console?shop={DOMAIN}&entered=1")
    assert main_text(await admin.http.get(done.headers["location"])).startswith("Pools")


async def test_a_browser_without_cookies_gets_a_message_and_no_loop_of_redirects(admin: Admin) -> None:
    page = await admin.get("/console?entered=1")

    assert main_text(page).startswith("Your browser keeps no cookie for this page")
    assert "enter.js" not in page.text


async def test_a_session_token_never_redirects_to_another_site(admin: Admin) -> None:
    for path in ("https://evil.example/", "//evil.example", "/\\evil.example"):
        fields = {"id_token": admin.token(), "return_to": path}
        done = await admin.http.post(f"/console/enter?shop={DOMAIN}", data=fields, headers=SAME_SITE)

        assert done.headers["location"] == f"/console?shop={DOMAIN}&entered=1"


async def test_a_session_token_sent_by_another_site_is_refused(admin: Admin) -> None:
    fields = {"id_token": admin.token(), "return_to": "/console"}

    done = await admin.http.post(f"/console/enter?shop={DOMAIN}", data=fields, headers=FOREIGN)

    assert done.status_code == 403
    assert await admin.inventory.sql("select from sessions") == []


async def test_every_link_of_a_page_in_the_frame_names_the_shop(admin: Admin) -> None:
    await admin.open()

    page = await admin.get()

    links = re.findall(r'(?:href|action)="(/[^"]*)"', page.text)
    pages = [link for link in links if not link.startswith("/assets/")]
    assert pages
    assert [page for page in pages if f"shop={DOMAIN}" not in page] == []


async def test_a_session_in_the_frame_ends_after_a_working_day(admin: Admin) -> None:
    await admin.open()
    await admin.inventory.sql(
        "update sessions set began_at = now() - make_interval(hours => %(hours)s, secs => 1)", hours=PLATFORM_HOURS
    )

    async def has_ended() -> bool:
        return (await admin.get()).status_code == 401

    await eventually(has_ended)


async def test_uninstalling_the_app_ends_the_sessions_of_its_merchants(admin: Admin) -> None:
    await admin.open()
    other = await Admin(admin.scene, user=2).open()
    shop = await admin.scene.find_shop()

    admin.scene.platform.uninstall(DOMAIN)
    answer = await deliver(shop, "app/uninstalled", {"id": 1, "myshopify_domain": DOMAIN})
    await handle(admin.inventory)

    assert answer.status_code == 200
    for browser in (admin, other):
        assert main_text(await browser.get()).startswith(NOT_IN)
    assert await admin.inventory.sql("select from sessions") == []


async def test_a_shop_that_has_uninstalled_the_app_has_no_merchants_even_with_a_session(admin: Admin) -> None:
    await admin.open()
    await admin.inventory.sql("update installs set uninstalled_at = now()")
    await admin.inventory.sql("select pg_notify('holdfast', 'sessions ')")

    async def is_out() -> bool:
        return (await admin.get()).status_code == 401

    await eventually(is_out)


async def test_a_shop_without_the_app_reads_so_in_its_frame(platform_source: PlatformSource) -> None:
    async with open_platform_scene(platform_source) as scene:
        admin = Admin(scene)

        answer = await admin.load()

        assert answer.status_code == 400
        assert main_text(answer).startswith("Your shop is not connected")
        assert "Your shop has refused. Please install the app there." in main_text(answer)
        assert f'href="/auth?shop={DOMAIN}" target="_top"' in answer.text
        assert admin.policy(answer) == scene.platform.address


async def test_pools_are_listed_with_what_can_be_sold(platform_source: PlatformSource) -> None:
    async with in_the_admin(platform_source, language="de") as admin:
        await admin.open()
        shop = await admin.scene.find_shop(await key(admin))
        await shop.call("create_pool", name="<b>Honig</b>", quantity=1050, low_stock_at=2000)

        page = await admin.get()

        assert "<b>Honig" not in page.text
        # What the platform's script shows around the frame.
        assert '<ui-title-bar title="Pools"></ui-title-bar>' in page.text
        assert f'<s-app-nav>\n  <a href="{html.escape(admin.address_of("/console"))}" rel="home">' in page.text
        text = main_text(page)
        assert "<b>Honig</b> noch keine Packungen 1.050 Einheiten verfügbar" in text
        assert "knapp" in text.partition("Einheiten verfügbar")[2]


async def key(admin: Admin) -> str:
    """The API key of the shop."""
    shop = await admin.scene.find_shop()
    return await admin.inventory.database.transact(lambda tx: shops.show_key(tx, shop.id))
