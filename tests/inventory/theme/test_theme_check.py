"""The platform's own checks of themes (`@shopify/theme-check-node`), on the theme app extension."""

import json
import shutil
from pathlib import Path

import pytest

from tests.helpers.node import ROOT, installed_packages, node

EXTENSION = ROOT / "extensions" / "live-stock"

CHECK = """
const { themeCheckRun } = require("@shopify/theme-check-node");
themeCheckRun(process.argv[1]).then(({ offenses, config }) => {
  const messages = offenses.map((offense) => `${offense.check}: ${offense.message}`);
  console.log(JSON.stringify({ messages, context: config.context, checks: config.checks.length }));
});
"""


@pytest.fixture(scope="module")
def packages() -> Path:
    return installed_packages(ROOT / "conformance" / "theme", ROOT / ".venv" / "theme-check")


def offences(packages: Path, extension: Path) -> list[str]:
    """What the checks for theme app extensions find."""
    checked = node(packages, "--eval", CHECK, extension)
    assert checked.returncode == 0, checked.stderr
    report = json.loads(checked.stdout)
    assert (report["context"], report["checks"] > 50) == ("app", True)
    return report["messages"]


def test_the_checks_of_the_platform_find_no_offence(packages: Path) -> None:
    assert offences(packages, EXTENSION) == []


def test_the_checks_of_themes_find_a_missing_text_and_a_script_that_is_too_large(
    packages: Path, tmp_path: Path
) -> None:
    copy = shutil.copytree(EXTENSION, tmp_path / "live-stock")
    german = json.loads((copy / "locales" / "de.json").read_text(encoding="utf-8"))
    del german["live_stock"]["low"]
    (copy / "locales" / "de.json").write_text(json.dumps(german), encoding="utf-8")
    with (copy / "assets" / "live-stock.js").open("a") as script:
        script.write("//" + "x" * 1000)

    result = offences(packages, copy)

    assert sorted(offence.partition(":")[0] for offence in result) == [
        "AssetSizeAppBlockJavaScript",
        "MatchingTranslations",
    ]
