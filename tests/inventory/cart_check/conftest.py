"""The function that looks at carts, in a Node of its own that answers one cart after the other."""

import contextlib
import json
import subprocess
from collections.abc import Generator, Sequence
from typing import Any, NamedTuple

import pytest

from holdfast_demo.shopify.checkout import CART_CHECK, Function, messages, node

TODAY = "2026-11-22"

_PLAIN = {0x2068: None, 0x2069: None, 0xD7: "x"}
"""The marks that keep titles apart, and the sign of multiplication."""

Draw = tuple[int, int, int]
"""A pool, what one sale takes of it, and how many units of it can be sold."""


def numbers(*pools: Draw, v: int = 7, until: str = TODAY) -> dict[str, Any]:
    """What the metafield of a variant says."""
    return {"v": v, "until": until, "pools": [[*pool] for pool in pools]}


class CartLine(NamedTuple):
    """A line of a cart. `numbers`: what is in the metafield; None: it is not there."""

    variant: int
    quantity: int
    numbers: Any
    title: str | None = "Single"
    product: str = "Honey"

    def input(self) -> dict[str, Any]:
        return {
            "quantity": self.quantity,
            "merchandise": {
                "__typename": "ProductVariant",
                "id": f"gid://shopify/ProductVariant/{self.variant}",
                "title": self.title,
                "product": {"title": self.product},
                "numbers": None if self.numbers is None else {"jsonValue": self.numbers},
            },
        }


class Running:
    """A function that runs."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self._process = process

    def answer(self, input: Any) -> Any:
        """What the function answers."""
        assert self._process.stdin
        assert self._process.stdout
        self._process.stdin.write(json.dumps(input) + "\n")
        self._process.stdin.flush()
        return json.loads(self._process.stdout.readline())

    def says(
        self,
        *lines: CartLine,
        language: str = "EN",
        step: str | None = "CHECKOUT_COMPLETION",
        others: Sequence[Any] = (),
    ) -> list[str]:
        """Why a cart cannot be paid, in plain letters; empty if it can."""
        answer = self.answer(
            {
                "buyerJourney": {"step": step},
                "localization": {"language": {"isoCode": language}},
                "shop": {"localTime": {"date": TODAY}},
                "cart": {"lines": [*(line.input() for line in lines), *others]},
            }
        )
        return [message.translate(_PLAIN) for message in messages(answer)]


@contextlib.contextmanager
def running_cart_check() -> Generator[Running]:
    """The function of the repository, for as long as the block lasts."""
    program = node()
    assert program, "Node comes with the environment"
    command = Function(CART_CHECK, program).command
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield Running(process)
        finally:
            process.kill()


@pytest.fixture(scope="module")
def function() -> Generator[Running]:
    with running_cart_check() as function:
        yield function
