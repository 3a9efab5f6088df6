"""The page on which a customer fills a cart and pays, after the app's function has checked the cart."""

from collections.abc import Sequence

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from holdfast.kit.pages.site import redirect
from holdfast_demo.shared import serving
from holdfast_demo.shopify import functions, orders, pages, pictures
from holdfast_demo.shopify.errors import ShopifyRefusal
from holdfast_demo.shopify.model import Order, Variant
from holdfast_demo.shopify.orders import SaleLine
from holdfast_demo.shopify.platform_state import PlatformState
from holdfast_demo.shopify.store import ThingQuery

MAX_VARIANTS = 18
"""A form has at most twenty fields."""


class CheckoutStopped(Exception):
    """The function of the app refuses a cart. The arguments are its messages."""


async def buy(world: PlatformState, domain: str, sold: Sequence[SaleLine], *, language: str = "EN") -> Order:
    """Pay for a cart. Raises `CheckoutStopped`, and `ShopifyRefusal` as any sale does."""
    check = functions.cart_check()
    shop = world.shop(domain)
    if check and shop.installed:
        cart = functions.cart(world, shop, sold, language=language, step="CHECKOUT_COMPLETION")
        if messages := await check.errors(cart):
            raise CheckoutStopped(*messages)
    return orders.sell(world, domain, sold)


def routes(world: PlatformState) -> list[BaseRoute]:
    """The page of a cart."""

    async def show(request: Request) -> Response:
        return _cart_page(world, request.path_params["shop"], {}, [])

    async def pay(request: Request) -> Response:
        domain, form = request.path_params["shop"], await serving.form_fields(request)
        language = "DE" if request.headers.get("accept-language", "").lower().startswith("de") else "EN"
        try:
            await buy(world, domain, _cart_lines(form), language=language)
        except CheckoutStopped as stopped:
            return _cart_page(world, domain, form, [str(message) for message in stopped.args])
        except ShopifyRefusal as refused:
            return _cart_page(world, domain, form, [str(refused)])
        return serving.to_response(redirect(f"/{domain}"))

    return [Route("/{shop}/cart", show), Route("/{shop}/cart", pay, methods=["POST"])]


def _cart_page(world: PlatformState, domain: str, form: dict[str, str], errors: list[str]) -> Response:
    shop = world.find_shop(domain)
    if shop is None:
        return pages.page("gone.html", 404, why=f"There is no shop {domain}.")
    variants = world.store.select(Variant, domain, ThingQuery(max_count=MAX_VARIANTS))
    checks = functions.cart_check() is not None
    status = 422 if errors else 200
    return pages.page(
        "cart.html",
        status,
        shop=shop,
        variants=variants,
        pictures={variant.id: pictures.picture_of(variant) for variant in variants},
        prices={variant.id: pictures.price_of(variant) for variant in variants},
        form=form,
        errors=errors,
        checks=checks,
    )


def _cart_lines(form: dict[str, str]) -> list[SaleLine]:
    """The lines that a form orders. Raises `ShopifyRefusal`."""
    sold: list[SaleLine] = []
    for name, text in form.items():
        variant = name.removeprefix("variant-")
        if not variant.isdecimal() or not text.isdecimal() or not (variant + text).isascii() or len(text) > 7:
            raise ShopifyRefusal("A whole number up to 9999999 is expected for each variant.")
        if int(text):
            sold.append(SaleLine(int(variant), int(text)))
    return sold
