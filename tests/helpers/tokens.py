"""How many tokens a language model reads."""

import json
from typing import Any

BYTES_A_TOKEN = 3.7
"""A stand-in for a tokenizer, whose vocabulary would have to be fetched.

The tokenizers of two families of models, tried on the lists of both services, took 3.9 to 4.1 bytes a token. A smaller
number counts too many tokens rather than too few.
"""


def tokens(message: Any) -> int:
    """About how many tokens a JSON message is, as it is sent."""
    text = json.dumps(message, ensure_ascii=False, separators=(",", ":"))
    return round(len(text.encode()) / BYTES_A_TOKEN)
