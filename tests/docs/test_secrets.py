"""The table of secrets has a row for everything that signs, seals or opens."""

import ast
import re
from collections.abc import Collection, Iterator, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, get_args

import pytest

from holdfast.events.service import EVENTS
from holdfast.events.settings import Settings as EventsSettings
from holdfast.inventory.service import INVENTORY
from holdfast.inventory.settings import Settings as InventorySettings
from holdfast.kit.environment.settings import Settings
from holdfast.kit.security.service_secret import Secret

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "packages" / "holdfast-server" / "src"
DERIVING = {"signer", "own_signer", "derive", "derive_each"}
SECRET_SETTING = re.compile(r"secret|password|token|_key$|database_url|storage_url")


def rows(heading: str) -> list[list[str]]:
    """The cells of the rows under a heading."""
    page = (ROOT / "docs/deploy/secrets.md").read_text(encoding="utf-8")
    section = page.split(f"\n### {heading}\n")[1].split("\n##")[0]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in section.splitlines() if line[:3] == "| `"]


def names_in(cells: Sequence[Sequence[str]]) -> list[str]:
    """What the first cells name."""
    return [name for row in cells for name in re.findall(r"`([^`]+)`", row[0])]


def purposes(deriving: Collection[str] = DERIVING) -> dict[str, set[str]]:
    """Every purpose for which the code derives a key by one of these methods, and in which packages."""
    services: dict[str, set[str]] = {}
    for path in SOURCE.rglob("*.py"):
        for purpose in _purposes_in(path, deriving):
            services.setdefault(purpose, set()).add(path.relative_to(SOURCE).parts[1])
    return services


def own_purposes() -> set[str]:
    """The purposes for which each service signs for itself."""
    return {*purposes({"own_signer"})}


def _purposes_in(path: Path, deriving: Collection[str]) -> Iterator[str]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for function in ast.walk(tree):
        if not isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        for call in ast.walk(function):
            if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute):
                continue
            if call.func.attr in deriving and path.name != "service_secret.py":
                yield from _texts(call.args[0], function, path)
    if path.name == "service_secret.py" and "derive_each" in deriving:
        yield "seal"


def _texts(argument: ast.expr, function: ast.FunctionDef | ast.AsyncFunctionDef, path: Path) -> Sequence[str]:
    """The texts that an argument may be: a text, or a parameter whose type lists them."""
    if isinstance(argument, ast.Constant):
        return [str(argument.value)]
    assert isinstance(argument, ast.Name), f"{path}: a purpose must be a text, or of a Literal type"
    [annotation] = [arg.annotation for arg in function.args.args if arg.arg == argument.id]
    assert isinstance(annotation, ast.Name), f"{path}: a purpose must be a text, or of a Literal type"
    module = import_module(".".join(path.relative_to(SOURCE).with_suffix("").parts))
    return get_args(getattr(module, annotation.id))


def test_every_purpose_for_which_a_key_is_derived_has_a_row() -> None:
    documented = names_in(rows("Keys derived from the secret key"))

    assert sorted(documented) == sorted(purposes())


def test_the_rows_of_secrets_name_the_services_that_derive_the_keys() -> None:
    services = {"accounts": "both", "kit": "both", "inventory": "inventory", "events": "events"}
    documented = {row[0].strip("`"): row[1] for row in rows("Keys derived from the secret key")}

    assert documented == {purpose: services[min(packages)] for purpose, packages in purposes().items()}


@pytest.mark.parametrize("kind", [InventorySettings, EventsSettings], ids=["inventory", "events"])
def test_every_setting_with_a_secret_has_a_row(kind: type[Settings]) -> None:
    secret = {
        kind.variable(name)
        for name, field in kind.model_fields.items()
        if field.annotation is str and SECRET_SETTING.search(name)
    }

    assert secret <= set(names_in(rows("In the settings")))


def test_every_table_with_something_sealed_has_a_row() -> None:
    sealed = {column.table for product in (INVENTORY, EVENTS) for column in product.sealed}

    assert sealed == set(names_in(rows("Keys in the database")))


def test_purposes_that_both_services_sign_for_have_keys_of_their_own() -> None:
    shared = {purpose for purpose, packages in purposes().items() if packages & {"accounts", "kit"}}

    assert shared - own_purposes() == {"seal"}, "use `own_signer`: the services may have the same secret key"


def test_no_service_accepts_what_the_other_has_signed_with_the_same_secret_key() -> None:
    one, other = (Secret(b"secret" * 6, service=service) for service in ("events", "inventory"))

    assert len(own_purposes()) > 3
    for purpose in own_purposes():
        assert not one.own_signer(purpose).accepts("7", other.own_signer(purpose).sign("7"))


@pytest.mark.parametrize("old", [b"", b"the secret before" * 3])
def test_no_key_accepts_what_the_key_of_another_purpose_has_signed(old: bytes) -> None:
    secret = Secret(b"secret" * 6, old)
    signers: dict[str, Any] = {purpose: secret.signer(purpose) for purpose in purposes()}

    for text in ("7", "", "ada.myshopify.com 1763640000", "1-abcdefgh-2"):
        accepted = {
            (made, accepting)
            for made, signer in signers.items()
            for accepting, other in signers.items()
            if any(other.accepts(text, signature) for signature in signer.every(text))
        }
        assert accepted == {(signer, signer) for signer in signers}
