"""People with an account: how they sign in, their sessions, and the programs they let act for them.

A service that has such people applies `MIGRATIONS` to its database, finds templates in `FOLDER`, and says in an
`accounts.directory.Directory` who they are. This package knows nothing of the service.
"""

from pathlib import Path

FOLDER = Path(__file__).parent
MIGRATIONS = FOLDER / "migrations"
