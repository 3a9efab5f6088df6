"""What comes of a token, where it is not believed."""

import asyncio

import pytest

from holdfast.events.oauth import issuer as module
from holdfast.events.oauth.issuer import Issuer
from holdfast.kit.contract.problems import Problem
from holdfast.kit.security.signed_tokens import InvalidToken


async def refusal(issuer: Issuer, token: str) -> str:
    """Why a token is invalid."""
    with pytest.raises(InvalidToken) as error:
        await issuer.verify(token)
    return str(error.value)


async def is_unavailable(issuer: Issuer, token: str) -> int:
    """The seconds after which to come back with a token that nobody can tell to be good or bad now."""
    async with asyncio.timeout(30):
        with pytest.raises(Problem) as error:
            await issuer.verify(token)
    assert (error.value.status, error.value.code) == (503, "service_unavailable")
    assert error.value.retry_after
    return error.value.retry_after


async def is_not_believed(issuer: Issuer, token: str) -> None:
    """A caller that does not wait until the server is asked again would call the token invalid."""
    with pytest.MonkeyPatch.context() as context:
        context.setattr(module, "NEW_KEY_TIMEOUT_SECONDS", 0.05)
        with pytest.raises((InvalidToken, Problem)) as error:
            await issuer.verify(token)
    assert not isinstance(error.value, Problem) or error.value.status == 503
