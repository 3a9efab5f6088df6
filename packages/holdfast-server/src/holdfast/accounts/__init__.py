"""People with an account: how they sign in, their sessions, and the programs they let act for them.

A service that has accounts finds `schema/migrations` and templates in `FOLDER`, and implements
`accounts.directory.Directory` for its accounts. This package does not import the service.
"""

from pathlib import Path

PARAMETERS = frozenset({"after", "app", "key", "return_to", "since", "until", "which", "zone"})
"""The query parameters that the pages of this package read."""

FOLDER = Path(__file__).parent
