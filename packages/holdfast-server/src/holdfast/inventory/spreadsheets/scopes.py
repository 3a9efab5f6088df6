"""The scopes that some spreadsheets need besides the scope of the tool."""

from holdfast.kit.contract.caller import Caller
from holdfast.kit.contract.problems import INSUFFICIENT_SCOPE


def require_scope(caller: Caller, scope_of_tool: str, scope: str) -> None:
    """Raise `insufficient_scope` if the caller lacks a scope."""
    if not caller.has(scope):
        raise INSUFFICIENT_SCOPE(f"This needs the scope {scope} too.", scope=f"{scope_of_tool} {scope}")
