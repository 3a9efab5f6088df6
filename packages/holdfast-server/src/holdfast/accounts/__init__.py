"""People with an account: how they sign in, their sessions, and the programs they let act for them.

A service that has accounts finds migrations and templates in `FOLDER`, and implements
`accounts.directory.Directory` for its accounts. This package does not import the service.
"""

from pathlib import Path

PARAMETERS = frozenset({"return_to"})
"""The query parameters that the sign-in pages read."""

AUTHORIZATION_PARAMETERS = frozenset(
    {"client_id", "redirect_uri", "response_type", "response_mode", "scope", "state", "resource", "prompt", "nonce"}
    | {"code_challenge", "code_challenge_method"}
)
"""The query parameters that the pages of the authorization server read."""

FOLDER = Path(__file__).parent
