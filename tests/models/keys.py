"""What idempotency keys promise: a request that comes again with its key is done once, and answered the same."""

from collections.abc import Callable, Hashable
from typing import TypeVar

A = TypeVar("A")


class Keys:
    """The keys that requests came with, and the answers they got."""

    def __init__(self) -> None:
        self._answers: dict[str, tuple[Hashable, object]] = {}

    def once(self, key: str | None, request: Hashable, do: Callable[[], A]) -> "A | str":
        """The answer to a request. A refusal, which is a text, is not kept: the request may be tried again."""
        if key is None:
            return do()
        if key in self._answers:
            first, answer = self._answers[key]
            return answer if first == request else "idempotency_key_reused"  # pyright: ignore[reportReturnType]
        answer = do()
        if not isinstance(answer, str):
            self._answers[key] = request, answer
        return answer
