"""The parameters of a request, checked against the types that stripe-python ships.

Forms are decoded as Stripe decodes them: `line_items[0][quantity]=1`. An unknown name, a missing one and a value of
another type are refused with Stripe's code and the name of the parameter.
"""

import re
from collections.abc import Mapping, Sequence
from decimal import Decimal, InvalidOperation
from functools import cache
from types import UnionType
from typing import Any, Literal, NotRequired, Required, Union, cast, get_args, get_origin, get_type_hints
from urllib.parse import parse_qsl

from stripe import RequestOptions
from typing_extensions import is_typeddict

from holdfast_demo.stripe.errors import StripeRefusal, unmodelled_parameter

Values = dict[str, Any]

MAX_TEXT_CHARS = 5_000
"""Stripe's limit of a text."""

_NAME = re.compile(r"([^\[\]]+)((?:\[[^\[\]]*\])*)")
_PART = re.compile(r"\[([^\[\]]*)\]")
_OPTIONS = frozenset(RequestOptions.__annotations__)


def decode(form: str) -> Values:
    """The parameters of a form or a query, nested by their names. Raises `StripeRefusal`."""
    values: Values = {}
    try:
        pairs = parse_qsl(form, keep_blank_values=True, strict_parsing=bool(form), errors="strict", max_num_fields=1000)
    except ValueError as error:
        raise StripeRefusal("The parameters cannot be read.", checked=True) from error
    for name, value in pairs:
        matched = _NAME.fullmatch(name)
        if not matched:
            raise StripeRefusal(f"Invalid parameter name: {name}", param=name, checked=True)
        parts = [matched[1], *_PART.findall(matched[2])]
        members: Values = values
        for index, part in enumerate(parts):
            key = part or str(len(members))
            if index == len(parts) - 1:
                if key in members:
                    raise StripeRefusal(f"The parameter {name} is given more than once.", param=name, checked=True)
                members[key] = value
            else:
                below = members.setdefault(key, {})
                if not isinstance(below, dict):
                    raise StripeRefusal(f"Invalid parameter: {name}", param=name, checked=True)
                members = cast(Values, below)
    return values


def check_params(values: Values, params: type, modelled: frozenset[str], *, json: bool = False) -> Values:
    """The values with the types that `params` declares. Raises `StripeRefusal`.

    modelled    the names that the double supports
    json        whether they came as JSON, which distinguishes numbers and texts
    """
    result = _Check(json).members(values, params, "")
    for name in result:
        if name not in modelled:
            raise unmodelled_parameter(name)
    return result


@cache
def _members(params: type) -> Mapping[str, tuple[Any, bool]]:
    """The names of a typed dictionary, with their types and whether they are required."""
    # The options of a request are declared in another module; they are not parameters.
    hints = {name: hint for name, hint in params.__annotations__.items() if name not in _OPTIONS}
    declared = type("Declared", (), {"__annotations__": hints, "__module__": params.__module__})
    members: dict[str, tuple[Any, bool]] = {}
    for name, hint in get_type_hints(declared, include_extras=True).items():
        wrapped = get_origin(hint) in {NotRequired, Required}
        members[name] = (get_args(hint)[0] if wrapped else hint, get_origin(hint) is not NotRequired)
    return members


class _Check:
    def __init__(self, json: bool) -> None:
        self._json = json

    def members(self, values: Values, params: type, path: str) -> Values:
        known_members = _members(params)
        for name in values:
            if name not in known_members:
                at = self._at(path, name)
                raise StripeRefusal(
                    f"Received unknown parameter: {at}", code="parameter_unknown", param=at, checked=True
                )
        for name, (_, required) in known_members.items():
            if required and name not in values:
                at = self._at(path, name)
                raise StripeRefusal(f"Missing required param: {at}.", code="parameter_missing", param=at, checked=True)
        return {name: self.value(value, known_members[name][0], self._at(path, name)) for name, value in values.items()}

    def value(self, value: Any, type: Any, path: str) -> Any:
        kinds = list(_alternatives(type))
        if isinstance(value, dict):
            return self._nested(cast(Values, value), kinds, path)
        if isinstance(value, list):
            listed = cast(Sequence[Any], value)
            return self._nested({str(index): entry for index, entry in enumerate(listed)}, kinds, path)
        if value is None:
            raise StripeRefusal(f"Invalid value for {path}: null", param=path, checked=True)
        return self._plain(value, kinds, path)

    def _nested(self, value: Values, kinds: Sequence[Any], path: str) -> Any:
        for kind in kinds:
            if is_typeddict(kind):
                return self.members(value, kind, path)
            if get_origin(kind) is list and all(key.isdecimal() for key in value):
                (item,) = get_args(kind)
                ordered = sorted(value.items(), key=lambda pair: int(pair[0]))
                return [self.value(entry, item, self._at(path, key)) for key, entry in ordered]
            if get_origin(kind) is dict:
                return self._texts(value, path)
        raise StripeRefusal(f"Invalid {self._expected_kind(kinds)}: {path} is a hash", param=path, checked=True)

    def _texts(self, value: Values, path: str) -> Values:
        """Check metadata: Stripe stores up to 50 texts of 500 characters, under names of 40."""
        if len(value) > 50:
            raise StripeRefusal(f"{path} can have up to 50 keys.", param=path, checked=True)
        for name, text in value.items():
            at = self._at(path, name)
            if not isinstance(text, str):
                raise StripeRefusal(f"Metadata values must be strings: {at}", param=at, checked=True)
            if len(name) > 40 or len(text) > 500:
                message = f"Metadata keys have up to 40 characters, and values up to 500: {at}"
                raise StripeRefusal(message, param=at, checked=True)
        return {name: text for name, text in value.items() if text}

    def _plain(self, value: Any, kinds: Sequence[Any], path: str) -> Any:
        literals = [literal for kind in kinds if get_origin(kind) is Literal for literal in get_args(kind)]
        if value in literals:
            return value
        # An open list of texts is closed for one version of the API.
        texts = str in kinds and not any(literals)
        if value == "" and not self._json:
            raise StripeRefusal(
                f"You passed an empty string for '{path}'. We assume empty values are an attempt to unset a parameter; "
                f"however '{path}' cannot be unset.",
                code="parameter_invalid_empty",
                param=path,
                checked=True,
            )
        for kind in kinds:
            typed_value = self._read(value, kind)
            if typed_value is not None and (kind is not str or texts):
                if kind is str and len(value) > MAX_TEXT_CHARS:
                    message = f"Invalid string: {path} has more than {MAX_TEXT_CHARS} characters"
                    raise StripeRefusal(message, param=path, checked=True)
                return typed_value
        if literals:
            choices = ", ".join(str(literal) for literal in literals)
            raise StripeRefusal(f"Invalid {path}: must be one of {choices}", param=path, checked=True)
        expected = self._expected_kind(kinds)
        code = "parameter_invalid_integer" if expected == "integer" else ""
        raise StripeRefusal(f"Invalid {expected}: {value}", code=code, param=path, checked=True)

    def _read(self, value: Any, kind: Any) -> Any:
        """A value as a kind; None if it is not of that kind."""
        if self._json:
            return value if type(value) is (str if kind is Decimal else kind) else None
        if kind is bool:
            return {"true": True, "false": False}.get(value)
        if kind is int:
            return int(value) if re.fullmatch(r"-?[0-9]{1,18}", value) else None
        if kind in {Decimal, float}:
            try:
                Decimal(value)
            except InvalidOperation:
                return None
        return value if kind in {str, Decimal, float} else None

    def _expected_kind(self, kinds: Sequence[Any]) -> str:
        names = {int: "integer", bool: "boolean", str: "string", Decimal: "decimal", float: "decimal"}
        kind_names = [names[kind] for kind in kinds if kind in names]
        if kind_names:
            return kind_names[0]
        return "array" if any(get_origin(kind) is list for kind in kinds) else "object"

    def _at(self, path: str, name: str) -> str:
        if not path:
            return name
        return f"{path}.{name}" if self._json else f"{path}[{name}]"


def _alternatives(type: Any) -> Sequence[Any]:
    """The kinds of values that a type allows."""
    if get_origin(type) in {Union, UnionType}:
        return [kind for alternative in get_args(type) for kind in _alternatives(alternative)]
    return [type]
