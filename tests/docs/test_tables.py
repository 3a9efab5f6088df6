"""The tables of the docs say what the code says."""

from pathlib import Path

from pydantic.fields import FieldInfo

from holdfast.events.problems import ALL
from holdfast.events.settings import Settings
from holdfast.kit.problems import EVERYWHERE

DOCS = Path(__file__).parents[2] / "docs"


def table(page: str) -> list[str]:
    """The rows of the one table of a page, without its head."""
    lines = (DOCS / page).read_text(encoding="utf-8").splitlines()
    return [line for line in lines if line.startswith("| `")]


def shown(field: FieldInfo) -> str:
    default = "empty" if field.default == "" else f"`{field.default}`"
    return f"| `{field.validation_alias}` | {default} | {field.description} |"


def test_problems_lists_every_code_with_its_status_meaning_and_hint() -> None:
    kinds = sorted((*EVERYWHERE, *ALL), key=lambda kind: (kind.status, kind.code))
    assert table("problems.md") == [
        f"| `{kind.code}` | {kind.status} | {kind.meaning} | {kind.hint} |" for kind in kinds
    ]


def test_settings_lists_every_variable_with_its_default_and_description() -> None:
    assert table("settings.md") == [shown(field) for field in Settings.model_fields.values()]
