"""An operator at the command line of the inventory service."""

from pathlib import Path

from holdfast.kit.security.service_secret import secret
from tests.helpers.command_line import run_holdfast

DOMAIN = "ada.myshopify.com"


class ShopOperator:
    """An operator, who has the command line, the database and the data directory."""

    def __init__(self, url: str, data_dir: Path) -> None:
        self.environment = {
            "INVENTORY_DATABASE_URL": url,
            "INVENTORY_SECRET_KEY": secret("", data_dir / "inventory.secret").value.decode(),
            "HOLDFAST_DATA_DIR": str(data_dir),
        }

    def run(self, *words: str, status: int = 0) -> str:
        """What a command of the inventory service prints: its results, or its complaint."""
        done = run_holdfast("inventory", *words, **self.environment)
        assert done.returncode == status, done.stdout + done.stderr
        return done.stderr if status else done.stdout

    def add(self, domain: str = DOMAIN) -> str:
        """Add a shop; its key."""
        return self.run("shop", "add", domain).splitlines()[-1]
