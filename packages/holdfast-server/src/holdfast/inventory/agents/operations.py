"""Operations for agents."""

import secrets

from holdfast.inventory.agents import sql
from holdfast.inventory.agents.model import Registration
from holdfast.inventory.resources import Tx
from holdfast.kit.contract.problems import INVALID_API_KEY
from holdfast.kit.security.api_keys import digest


async def register(tx: Tx, key: str) -> Registration:
    """Return the registration of an API key, made if there is none. Raises `invalid_api_key`."""
    id = f"reg_{secrets.token_urlsafe(16)}"
    if registration := await sql.register(tx, digest(key), id, digest(id)):
        return registration
    raise INVALID_API_KEY()
