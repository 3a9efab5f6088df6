"""What SQL says of the code holds: the channels that triggers notify, and the names and files that comments name."""

import re
from pathlib import Path

import pytest

import holdfast

SOURCE = Path(holdfast.__file__).parent
SERVICES = ("events", "inventory")

NOTICE = re.compile(r"pg_notify\('holdfast', '(\w+) ")
CHANNEL_POINTER = re.compile(r"it must match (\w+) in ([\w/]+\.py)\.\n\s*perform pg_notify\('holdfast', '(\w+) ")
COMMENT = re.compile(r"^[ \t]*--.*\n(?:[ \t]*--.*\n)*", re.MULTILINE)
POINTER = re.compile(r"((?:`\w+` and )*`?\w+`?) in ([\w/]+\.py)\b")
PATH = re.compile(r"[\w/]+\.py\b")


def files_of(service: str) -> dict[str, str]:
    """The triggers and functions of a service and of the kit, by their paths."""
    return {
        path.relative_to(SOURCE).as_posix(): path.read_text(encoding="utf-8")
        for package in ("kit", service)
        for folder in ("triggers", "functions")
        for path in sorted((SOURCE / package).rglob(f"schema/{folder}/*.sql"))
    }


def channels_of(service: str) -> set[str]:
    """The channels that a service listens to."""
    modules = [path for package in ("kit", "accounts", service) for path in (SOURCE / package).rglob("*.py")]
    return {channel for path in modules for channel in constants(path.read_text(encoding="utf-8")).values()}


def constants(module: str) -> dict[str, str]:
    """The channels of a module, by the names of their constants."""
    return dict(re.findall(r'^(\w*CHANNEL\w*)(?:: \w+)? = "(\w+)"', module, re.MULTILINE))


def module_text(service: str, path: str) -> str:
    """The text of a module that a comment names by its path in the kit or in its service; nothing if there is none."""
    file = SOURCE / path if path.startswith("kit/") else SOURCE / service / path
    return file.read_text(encoding="utf-8") if file.is_file() else ""


def stale_pointers(service: str, sql: str) -> list[str]:
    """The names and modules in the comments of SQL that do not exist."""
    comments = [" ".join(re.split(r"\s*--\s*", comment)) for comment in COMMENT.findall(sql)]
    paths = [path for comment in comments for path in PATH.findall(comment)]
    pointers = [pointer for comment in comments for pointer in POINTER.findall(comment)]
    return [
        *(path for path in paths if not module_text(service, path)),
        *(
            f"{name} in {path}"
            for names, path in pointers
            for name in re.findall(r"\w+", names.replace(" and ", " "))
            if not re.search(rf"^(?:(?:async )?def |class )?{name}\b", module_text(service, path), re.MULTILINE)
        ),
    ]


@pytest.mark.parametrize("service", SERVICES)
def test_every_channel_that_a_trigger_notifies_is_a_constant_of_the_code(service: str) -> None:
    texts = files_of(service)
    notices = [(path, channel) for path, text in texts.items() for channel in NOTICE.findall(text)]
    channels = channels_of(service)

    assert len(notices) == "".join(texts.values()).count("pg_notify(") > 2
    assert [(path, channel) for path, channel in notices if channel not in channels] == []


@pytest.mark.parametrize("service", SERVICES)
def test_a_comment_on_a_channel_names_the_constant_with_its_name(service: str) -> None:
    texts = files_of(service)
    pointers = [(path, *pointer) for path, text in texts.items() for pointer in CHANNEL_POINTER.findall(text)]

    assert len(pointers) == "".join(texts.values()).count("it must match ") > 0
    for file, constant, path, channel in pointers:
        assert constants(module_text(service, path)).get(constant) == channel, (file, constant, path)


@pytest.mark.parametrize("service", SERVICES)
def test_every_name_and_module_in_a_comment_of_sql_exists(service: str) -> None:
    stale = {path: stale_pointers(service, text) for path, text in files_of(service).items()}

    assert {path: pointers for path, pointers in stale.items() if pointers} == {}


@pytest.mark.parametrize(
    ("comment", "stale"),
    [
        ("-- See `changed_by` in log/model.py.", []),
        ("-- See `changed_by` and `nothing` in log/model.py.", ["nothing in log/model.py"]),
        ("-- `python -m tests` reads\n    -- nothing/at_all.py.", ["nothing/at_all.py"]),
        ("-- It must match NOTHING in\n-- log/model.py.", ["NOTHING in log/model.py"]),
    ],
)
def test_a_stale_pointer_in_a_comment_of_sql_is_noticed(comment: str, stale: list[str]) -> None:
    assert stale_pointers("events", f"{comment}\nselect 1;\n") == stale
