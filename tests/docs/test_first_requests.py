"""The lines of the first requests work as printed."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.helpers.processes import HOLDFAST
from tests.helpers.serving import startup_output, stop

ROOT = Path(__file__).parents[2]
README, FIRST_REQUESTS = ROOT / "README.md", ROOT / "docs/first-requests.md"


def commands() -> str:
    """Every shell line of the first requests, in order."""
    return "\n".join(re.findall(r"```sh\n(.*?)```", FIRST_REQUESTS.read_text(encoding="utf-8"), re.DOTALL))


@pytest.mark.skipif(shutil.which("curl") is None and "CI" not in os.environ, reason="needs curl")
def test_a_first_sale_and_a_first_registration_by_the_lines_of_the_page(tmp_path: Path, data_dir: Path) -> None:
    environment = {**os.environ, "HOLDFAST_DATA_DIR": str(data_dir)}
    up = subprocess.Popen([HOLDFAST, "up", "--port=0"], env=environment, stdout=subprocess.PIPE, text=True)
    lines = commands()
    (tmp_path / ".venv").symlink_to(Path(HOLDFAST).parents[1])
    try:
        assert up.stdout
        started = startup_output(up.stdout)
        ran = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", lines],
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
    finally:
        stop(up)

    addresses = dict(re.findall(r"^(Inventory|Events) +(http://\S+)$", started, re.MULTILINE))
    assert f"{addresses['Events']}/docs" in started
    assert f"{addresses['Inventory']}/mcp" in started
    assert "hf_" in started
    assert f'"stream_url":"{addresses["Inventory"]}/' in ran.stdout
    assert ran.stderr == ""
    assert '"gid://shopify/ProductVariant/1001":44' in ran.stdout
    assert '"gid://shopify/ProductVariant/1006":7' in ran.stdout
    assert '"gid://shopify/ProductVariant/1012":3' in ran.stdout
    assert '"status":"accepted"' in ran.stdout
    assert '"status":"registered"' in ran.stdout


def test_the_readme_is_short() -> None:
    assert len(README.read_text(encoding="utf-8").splitlines()) < 100
