"""The page of a shop on which a customer fills a cart and pays."""

from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from holdfast.kit.pages.site import redirect
from holdfast_demo.shared import serving
from holdfast_demo.shopify import checkout, pictures, shops, site
from holdfast_demo.shopify.errors import ShopifyRefusal
from holdfast_demo.shopify.model import Variant
from holdfast_demo.shopify.orders import SaleLine
from holdfast_demo.shopify.pages import order_page, storefront
from holdfast_demo.shopify.platform_state import PlatformState
from holdfast_demo.shopify.store import RecordQuery

MAX_VARIANTS = 18
"""A form has at most twenty fields."""


def routes(platform: PlatformState) -> list[BaseRoute]:
    """The page of a cart."""

    async def show(request: Request) -> Response:
        return _cart_page(platform, request, {}, [])

    async def pay(request: Request) -> Response:
        domain, form = request.path_params["shop"], await serving.form_fields(request)
        language = serving.language_of(request).code.upper()
        try:
            order = await checkout.buy(platform, domain, _cart_lines(form), language=language)
        except checkout.CheckoutStopped as stopped:
            return _cart_page(platform, request, form, [str(message) for message in stopped.args])
        except ShopifyRefusal as refusal:
            return _cart_page(platform, request, form, [str(refusal)])
        return serving.to_response(redirect(order_page.address_of(domain, order)))

    return [Route("/{shop}/cart", show), Route("/{shop}/cart", pay, methods=["POST"])]


def _cart_page(platform: PlatformState, request: Request, form: dict[str, str], errors: list[str]) -> Response:
    domain, language = request.path_params["shop"], serving.language_of(request)
    shop = platform.find_shop(domain)
    if shop is None:
        return site.page(request, "gone.html", 404, why=f"There is no shop {domain}.")
    variants = platform.store.select(Variant, domain, RecordQuery(max_count=MAX_VARIANTS))
    products: dict[int, dict[str, Any]] = {}
    chosen: list[tuple[Variant, int]] = []
    for variant in variants:
        text = form.get(f"variant-{variant.id}", "")
        quantity = checkout.quantity_of(text) or 0
        chosen.append((variant, quantity))
        address = storefront.of_variant(domain, variant)
        product = products.setdefault(
            variant.product, {"title": variant.product_title, "address": address, "lines": []}
        )
        product["lines"].append(
            {
                "variant": variant,
                "picture": pictures.picture_of(variant),
                "price": pictures.price_of(variant, language),
                "cents": pictures.cents_of(variant),
                "left": shops.available(platform, domain, variant),
                "quantity": text,
                "total": pictures.total_of([(variant, quantity)], language) if quantity else "",
            }
        )
    return site.page(
        request,
        "cart.html",
        422 if errors else 200,
        in_frame=site.is_in_frame(request),
        shop=shop,
        products=[*products.values()],
        is_filled=any(quantity for _, quantity in chosen),
        total=pictures.total_of(chosen, language),
        currency=pictures.CURRENCY,
        errors=errors,
        checks=checkout.cart_check() is not None,
    )


def _cart_lines(form: dict[str, str]) -> list[SaleLine]:
    """The lines that a form orders. Raises `ShopifyRefusal`."""
    sold: list[SaleLine] = []
    for name, text in form.items():
        variant, quantity = name.removeprefix("variant-"), checkout.quantity_of(text)
        if not variant.isdecimal() or not variant.isascii() or quantity is None:
            raise ShopifyRefusal("A whole number up to 9999999 is expected for each variant.")
        if quantity:
            sold.append(SaleLine(int(variant), quantity))
    if not sold:
        raise ShopifyRefusal("The cart is empty: choose how many of a pack.")
    return sold
