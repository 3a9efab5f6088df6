"""The storefront of a shop: a product's page with the theme block, as visitors get it, and a form that buys at once.

The block's script, style, texts and settings are the files of the theme app extension (`extensions/live-stock`).
"""

import json
import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from holdfast.kit.pages.language import LANGUAGES, Language
from holdfast.kit.pages.site import redirect
from holdfast_demo.shared import serving
from holdfast_demo.shopify import checkout, pictures, seed, shops, site
from holdfast_demo.shopify.app_proxy import PREFIX, SUBPATH
from holdfast_demo.shopify.errors import ShopifyRefusal
from holdfast_demo.shopify.model import Order, Product, Variant, handle
from holdfast_demo.shopify.orders import SaleLine
from holdfast_demo.shopify.pages import order_page
from holdfast_demo.shopify.platform_state import PlatformState

EXTENSION = Path(__file__).parents[1] / "theme"
LOCALES = {"en": "en.default.json", "de": "de.json"}
AVAILABILITIES = ("in", "plenty", "low", "out", "back", "old")


def routes(platform: PlatformState) -> list[BaseRoute]:
    """The pages of storefronts, and the files of the block."""
    storefront = _Storefront(platform)
    return [
        Route("/{shop}/products/{handle}", storefront.product),
        Route("/{shop}/cart/add", storefront.buy, methods=["POST"]),
        *serving.asset_routes(site.SITE, "theme/live-stock.js", "theme/live-stock.css", "templates/product.js"),
    ]


class _Storefront:
    def __init__(self, platform: PlatformState) -> None:
        self._platform = platform

    async def product(self, request: Request) -> Response:
        language = _language(request, request.query_params.get("locale", ""))
        domain, handle_in_path = request.path_params["shop"], request.path_params["handle"]
        products = self._platform.store.select(Product, domain)
        product = next((candidate for candidate in products if candidate.handle == handle_in_path), None)
        if product is None or not shops.variants_of(self._platform, domain, product.id):
            return site.page(request, "gone.html", 404, why=f"The shop {domain} has no product {handle_in_path}.")
        return self._product_page(request, product, request.query_params.get("variant", ""), language)

    async def buy(self, request: Request) -> Response:
        """Sell a variant, and show its product again."""
        domain, form = request.path_params["shop"], await serving.form_fields(request)
        language, chosen = _language(request, form.get("locale", "")), form.get("id", "")
        try:
            variant = shops.find_variant(
                self._platform, domain, int(chosen) if re.fullmatch("[0-9]{1,18}", chosen) else 0
            )
        except ShopifyRefusal as refusal:
            return site.page(request, "gone.html", 404, why=str(refusal))
        [product] = [
            candidate for candidate in self._platform.store.select(Product, domain) if candidate.id == variant.product
        ]
        quantity = form.get("quantity", "1")
        try:
            line = SaleLine(variant.id, _quantity_in(quantity))
            order = await checkout.buy(self._platform, domain, [line], language=language.code.upper())
        except (checkout.CheckoutStopped, ShopifyRefusal) as refusal:
            error = " ".join(map(str, refusal.args))
            return self._product_page(request, product, chosen, language, error, quantity)
        address = f"{of_variant(domain, variant)}&locale={language.code}&order={order.id}"
        return serving.to_response(redirect(address))

    def _product_page(
        self,
        request: Request,
        product: Product,
        chosen: str,
        language: Language,
        error: str = "",
        quantity: str = "1",
    ) -> Response:
        domain = request.path_params["shop"]
        variants = shops.variants_of(self._platform, domain, product.id)
        numbers = {variant.id: shops.available(self._platform, domain, variant) for variant in variants}
        first_available = next((variant for variant in variants if numbers[variant.id] > 0), variants[0])
        available_ids = {variant.id for variant in variants if numbers[variant.id] > 0}
        variant = next(
            (variant for variant in variants if str(variant.id) == chosen and variant.id in available_ids),
            first_available,
        )
        return site.page(
            request,
            "product.html",
            422 if error else 200,
            in_frame=site.is_in_frame(request),
            connects=self._platform.app.address,
            language=language,
            description=seed.DESCRIPTIONS.get(product.title, ""),
            error=error,
            quantity=quantity,
            order=self._order(domain, request.query_params.get("order", "")),
            order_address=order_page.address_of,
            shop=self._platform.shop(domain),
            product=product,
            variants=variants,
            chosen=variant,
            address=f"{of_variant(domain, variant)}&locale={language.code}",
            pictures={variant.id: pictures.picture_of(variant) for variant in variants},
            cents={variant.id: pictures.cents_of(variant) for variant in variants},
            currency=pictures.CURRENCY,
            prices={variant.id: pictures.price_of(variant, language) for variant in variants},
            savings=pictures.savings_of(variants, language),
            numbers=numbers,
            stock={variant.id: _stock_text(numbers[variant.id], language) for variant in variants},
            blocks=[block(language, proxy=f"/{domain}/{PREFIX}/{SUBPATH}", show=show) for show in ("chosen", "all")],
        )

    def _order(self, domain: str, id: str) -> Order | None:
        """The order that was just placed on the page."""
        return self._platform.store.find(Order, domain, int(id)) if re.fullmatch("[0-9]{1,18}", id) else None


def _quantity_in(text: str) -> int:
    """The quantity to sell. Raises `ShopifyRefusal`."""
    if quantity := checkout.quantity_of(text):
        return quantity
    raise ShopifyRefusal("A quantity is a whole number from 1 to 9999999.")


def _language(request: Request, code: str) -> Language:
    """The language with a code, which a theme has in the addresses of its pages; by default that of the browser."""
    return LANGUAGES.get(code) or serving.language_of(request)


def _stock_text(number: int, language: Language) -> str:
    """What a theme says about the stock of a variant by itself, from the number of the shop."""
    texts = _texts(language.code)
    return texts["out"] if number <= 0 else texts["in"].replace("[n]", language.number(number))


def of_variant(domain: str, variant: Variant) -> str:
    """The path of the page of a variant for visitors."""
    return f"/{domain}/products/{handle(variant.product_title)}?variant={variant.id}"


def block(language: Language, **settings: Any) -> Mapping[str, Any]:
    """The values for the template of the block: its settings, and its texts.

    settings    the settings that a merchant has changed
    """
    values = {**_defaults(), **settings}
    texts = _texts(language.code)
    return {
        **values,
        "texts": {
            availability: values.get(f"text_{availability}") or texts[availability] for availability in AVAILABILITIES
        },
    }


@cache
def _defaults() -> Mapping[str, Any]:
    """The default settings of the block."""
    liquid = (EXTENSION / "live-stock.liquid").read_text(encoding="utf-8")
    schema = json.loads(liquid.partition("{% schema %}")[2].partition("{% endschema %}")[0])
    return {setting["id"]: setting["default"] for setting in schema["settings"] if "default" in setting}


@cache
def _texts(code: str) -> Mapping[str, str]:
    return json.loads((EXTENSION / LOCALES[code]).read_text(encoding="utf-8"))["live_stock"]
