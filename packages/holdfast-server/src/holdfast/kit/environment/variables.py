"""Reads the settings of a service from its variables: those of the environment, and the lines of `.env`."""

import os
from collections.abc import Collection, Iterable, Mapping, Sequence
from difflib import SequenceMatcher
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeVar
from urllib.parse import urlsplit

import psycopg
import structlog
from psycopg.conninfo import conninfo_to_dict
from pydantic import ValidationError
from pydantic_settings import DotEnvSettingsSource, EnvSettingsSource

from holdfast.kit.contract.problems import CannotStart
from holdfast.kit.environment.settings import Settings

Source = Literal["environment", ".env", "default"]

SIMILARITY = 0.75
"""How much of two names is the same if one may be a misspelt form of the other; 1 is all of it."""

log = structlog.get_logger()

SHARED_PREFIX = "HOLDFAST_"

S = TypeVar("S", bound=Settings)


class UnknownVariable(NamedTuple):
    """A variable that looks like a setting and is none.

    similar    the setting that may be meant
    is_ours    whether its name says that it is for this service; others may be for other programs
    """

    name: str
    similar: str | None
    is_ours: bool

    def __str__(self) -> str:
        return f"{self.name} (did you mean {self.similar}?)" if self.similar else self.name


class InvalidVariable(NamedTuple):
    """A setting with a value that cannot be used. The message goes on after the name, and does not quote the value."""

    name: str
    message: str

    def __str__(self) -> str:
        return f"{self.name} {self.message}"


class Variable(NamedTuple):
    """One setting, for operators.

    value     its value; for a secret, how long it is; for an address with a password, the address without it
    """

    name: str
    value: str
    is_secret: bool
    source: Source


def env_file() -> Path:
    """The file `.env` of the working directory, whether it exists or not."""
    return Path(str(Settings.model_config.get("env_file"))).absolute()


def file_variables(path: Path) -> dict[str, str]:
    """The variables in a file of another name, as they are written there. Raises OSError, ValueError."""
    path.open("rb").close()  # one that does not exist would count as empty
    source = DotEnvSettingsSource(Settings, env_file=path, case_sensitive=True)
    return {name: value or "" for name, value in source.env_vars.items()}


def read_settings(kind: type[S]) -> S:
    """The settings in the environment and `.env`.

    Raises `CannotStart` with a message that says what is wrong and how to correct it, without the values.
    """
    if unknown := unknown_in_file([kind]):
        names = "; ".join(str(variable) for variable in unknown)
        raise CannotStart(f"Unknown in .env: {names}. docs/settings.md lists the settings.")
    settings, invalid = validate_settings(kind)
    if settings is None:
        raise CannotStart(f"{'; '.join(str(variable) for variable in invalid)}. docs/settings.md lists the settings.")
    return settings


def validate_settings(kind: type[S]) -> tuple[S | None, Sequence[InvalidVariable]]:
    """The settings, or None and all that cannot be used. Raises `CannotStart` if `.env` cannot be read."""
    try:
        return kind(), ()  # pyright: ignore[reportCallIssue] - it reads the environment
    except (OSError, UnicodeDecodeError) as error:
        raise _unreadable_file(error) from error
    except ValidationError as error:
        # The values are left out: they may be secrets.
        return None, [
            InvalidVariable(_variable(kind, str(detail["loc"][0])), error_text(detail))
            for detail in error.errors(include_input=False)
        ]


def _dot_env(kind: type[Settings]) -> Mapping[str, str | None]:
    """The variables in `.env`; none if it does not exist. Raises `CannotStart` if it cannot be read."""
    try:
        return DotEnvSettingsSource(kind).env_vars
    except (OSError, UnicodeDecodeError) as error:
        raise _unreadable_file(error) from error


def _unreadable_file(error: OSError | UnicodeDecodeError) -> CannotStart:
    if isinstance(error, UnicodeDecodeError):
        return CannotStart(f"{env_file()} cannot be read: it is not UTF-8. Save it as UTF-8.")
    # A user who may not enter the working directory cannot see whether it has the file.
    return CannotStart(
        f"{env_file()} cannot be read: {error.strerror}. Run the command in a directory that this user may enter, or "
        "let this user read the file."
    )


def variables(kind: type[Settings]) -> Sequence[Variable]:
    """Every setting of a service, in the order of `docs/settings.md`, also those that cannot be used."""
    environment, file = EnvSettingsSource(kind).env_vars, _dot_env(kind)
    settings: list[Variable] = []
    for name, field in kind.model_fields.items():
        variable, is_secret = kind.variable(name), not field.repr
        key, source, value = variable.lower(), "default", _default_text(field.default)
        if key in environment:
            source, value = "environment", environment[key] or ""
        elif key in file:
            source, value = ".env", file[key] or ""
        settings.append(Variable(variable, _hidden(value) if is_secret else value, is_secret, source))
    return settings


def _default_text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def unknown_in_file(kinds: Iterable[type[Settings]]) -> Sequence[UnknownVariable]:
    """The names in `.env` that resemble a setting of these services, and are none."""
    return _unknown([name for kind in kinds for name in _dot_env(kind)], kinds)


def unknown_in_environment(kinds: Iterable[type[Settings]]) -> Sequence[UnknownVariable]:
    """The names in the environment that resemble a setting of these services, and are none."""
    return _unknown(os.environ, kinds)


def warn_of_unknown_variables(kind: type[Settings]) -> None:
    """Log the names in the environment that look like settings and are none.

    They are no error: other programs have variables in the same environment.
    """
    if unknown := unknown_in_environment([kind]):
        log.warning(
            "the environment has variables that look like settings and are none; they are ignored",
            variables=[str(variable) for variable in unknown],
        )


def _unknown(names: Iterable[str], kinds: Iterable[type[Settings]]) -> Sequence[UnknownVariable]:
    kinds = list(kinds)
    names_of_settings = {kind.variable(field) for kind in kinds for field in kind.model_fields}
    names_of_other_services = {name for kind in kinds for name in kind.variables_of_others}
    prefixes = (SHARED_PREFIX, *(f"{kind.service.upper()}_" for kind in kinds))
    unknown: dict[str, UnknownVariable] = {}
    for name in dict.fromkeys(name.upper() for name in names):
        if name in names_of_settings or name in names_of_other_services:
            continue
        similar, is_ours = _similar_variable(name, names_of_settings), name.startswith(prefixes)
        if similar or is_ours:
            unknown[name] = UnknownVariable(name, similar, is_ours)
    return list(unknown.values())


def _similar_variable(name: str, variables: Collection[str]) -> str | None:
    """The variable that a misspelt name resembles most, or None."""
    related = [variable for variable in variables if variable[:2] == name[:2]]
    ratio, similar = max(((_similarity(name, variable), variable) for variable in related), default=(0, None))
    return similar if ratio >= SIMILARITY else None


def _similarity(name: str, variable: str) -> float:
    # That two names begin with HOLDFAST_ says nothing about the rest of them.
    if name.startswith(SHARED_PREFIX) and variable.startswith(SHARED_PREFIX):
        name, variable = name.removeprefix(SHARED_PREFIX), variable.removeprefix(SHARED_PREFIX)
    return SequenceMatcher(None, variable, name).ratio()


def _hidden(value: str) -> str:
    """What may be shown of a secret, or of an address with a password."""
    if not value:
        return ""
    if "://" in value and (address := _address_without_password(value)):
        return address
    return f"set, {len(value)} characters"


def _address_without_password(address: str) -> str | None:
    """The scheme, user, host, port and path of an address. None if they cannot be told apart."""
    try:
        parts = urlsplit(address)
        if parts.scheme.startswith("postgres"):
            names = conninfo_to_dict(address)
            user, password, host = (str(names.get(key, "")) for key in ("user", "password", "host"))
            port, path = str(names.get("port", "")), f"/{names.get('dbname', '')}"
        else:
            user, password, host = parts.username or "", parts.password or "", parts.hostname or ""
            port, path = str(parts.port or ""), parts.path
    except (psycopg.ProgrammingError, ValueError):
        return None
    if "@" in host:  # a part of a password that was not escaped
        return None
    login = f"{user}{':***' if password else ''}@" if user or password else ""
    return f"{parts.scheme}://{login}{host}{f':{port}' if port else ''}{path}"


def _variable(kind: type[Settings], name: str) -> str:
    """The environment variable of an invalid setting. For a default value, `name` is the name of its field."""
    return kind.variable(name) if name in kind.model_fields else name


def error_text(error: Any) -> str:
    """What is wrong with a setting or an option, as the end of a sentence about it."""
    context = error.get("ctx", {})
    match error["type"]:
        case "int_parsing" | "int_parsing_size" | "int_from_float":
            return "must be a whole number"
        case "float_parsing" | "finite_number":
            return "must be a number"
        case "greater_than":
            return f"must be more than {_number(context['gt'])}"
        case "less_than":
            return f"must be less than {_number(context['lt'])}"
        case "greater_than_equal":
            return f"must be at least {_number(context['ge'])}"
        case "less_than_equal":
            return f"must be at most {_number(context['le'])}"
        case "literal_error":
            return f"must be one of {context['expected']}"
        case "bool_parsing":
            return "must be true or false"
        case "value_error":
            return str(context["error"])
        case _:
            return f"is not acceptable: {error['msg']}"


def _number(value: float) -> str:
    """A bound as operators write it: `300`, not `300.0`."""
    return str(int(value)) if value == int(value) else str(value)
