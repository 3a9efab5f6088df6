"""The page `docs/deploy/bounds.md`: what is bounded, who shares it, and what one stranger can take of it.

It is made of all `Bound`s of the code. `python -m tests.programs.bounds` writes it; a test compares. Another test walks
the syntax trees, and fails for whatever has a limit that no `Bound` names.
"""

import ast
import importlib
import pkgutil
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple, cast

import holdfast
import holdfast_verify
from holdfast.events import bounds as events_bounds
from holdfast.events.settings import Settings as EventsSettings
from holdfast.inventory import bounds as inventory_bounds
from holdfast.inventory.settings import Settings as InventorySettings
from holdfast.kit.contract.bounds import NOT_BY_STRANGERS, Bound
from holdfast.kit.contract.client import WIDE_SHARE

ROOT = Path(__file__).parents[2]
SOURCE = Path(holdfast.__file__).parent
PAGE = ROOT / "docs" / "deploy" / "bounds.md"

NO_SERVICE = ("commands", "kit/process/checks")
"""Folders whose programs serve no strangers: commands of operators."""

SMALL_CACHES = {
    "events/service.py:openapi_json": "the address of the service",
    "events/log/keys.py:_unseal_key": "keys of logs, which only the service makes",
    "holdfast_verify/formats/receipts.py:_log_texts": "texts of logs in receipts",
    "holdfast_verify/formats/receipts.py:_signer": "keys of logs, which only the service makes",
    "events/organizers/accent.py:dark_accent": "colours of organizers",
    "events/events/model.py:_escaped": "the address of the service",
    "events/organizers/accent.py:stylesheet": "colours of organizers",
    "events/organizers/accent.py:stylesheet_path": "colours of organizers",
    "events/pages/cover.py:_svg": "drawings for titles of events",
    "events/pages/registration/own_registration_pages.py:qr": "pictures of codes, only of registrations that exist",
    "kit/compat/uvicorn_protocol.py:_header_line": "lines of headers of answers",
    "kit/contract/client.py:path_of": "networks of addresses",
    "kit/contract/client.py:source": "networks of addresses",
    "kit/environment/metrics.py:counter": "counters of metrics",
    "kit/http/answers.py:accepts_gzip": "headers of requests",
    "kit/mcp/handshake.py:_decoded": "names of programs",
    "kit/pages/language.py:_clock": "times in a language",
    "kit/pages/language.py:_money": "amounts in a language",
    "kit/pages/language.py:_number": "numbers in a language",
    "kit/pages/language.py:_date": "dates in a language",
    "kit/pages/language.py:_encoded_query": "what the links of a page repeat of its query",
    "kit/pages/language.py:_skeleton": "dates in a language",
    "kit/pages/language.py:_time": "times in a language",
    "kit/pages/language.py:_times": "times in a language",
    "kit/pages/language.py:_zone": "time zones",
    "kit/pages/language.py:_units": "durations in a language",
    "kit/pages/language.py:_preferred_language": "headers of requests",
    "events/registrations/entrance_code.py:_codes_of_length": "codes of links, in the subprocess that writes mails",
    "events/events/calendar_file.py:_file_parts": "lines of calendar files",
    "holdfast_verify/formats/tree.py:_perfect_root": "hashes of the left part of a log",
    "kit/pages/site.py:_policy": "headers of pages",
    "kit/postgres/row_structs.py:_compile_maker": "structures of rows, which only our statements name",
    "kit/security/signed_tokens.py:_unseal_key": "signing keys, which only the service makes",
}
"""Functions that remember results which take a millisecond or less to compute again: nobody gains by filling them.

Each has what it remembers.
"""

TAKES_BOUND = {
    "events/oauth_server/client_keys.py:LRUCache",
    "events/texts/rendering.py:LRUCache",
    "kit/pages/page_cache.py:LRUCache",
    "kit/postgres/lookup_cache.py:LRUCache",
}
"""Limits inside a primitive that takes its `Bound` as an argument."""

MAKERS = {"Bound", "bound_without_strangers", "cache_bound"}
"""What makes a `Bound` of the texts that name a limit."""

CONSTANT = re.compile(r"_?MAX_(?:WAITING|CONCURRENT|CACHED|REMEMBERED|OPEN|UNREAD|LARGE)_?\w*")
"""Constants that limit what callers share."""

NOT_SHARED = {
    "kit/outbound/requests.py:Limits": "connections of one session, which its owner alone uses",
    "events/payments/checkout.py:MAX_OPEN_MINUTES": "how long one payment may take",
    "inventory/partner_webhooks/inbox.py:MAX_WAITING": "how many rows an answer lists",
    "kit/operations/idempotency.py:MAX_LARGE_ANSWERS_BYTES": "what is stored for one tenant; beyond it less is stored",
}
"""Constants with such a name that limit what nobody shares. Each has what it limits."""

EXCEPTIONS = NOT_SHARED.keys() | SMALL_CACHES.keys() | TAKES_BOUND


class Limited(NamedTuple):
    """Something with a limit in the code.

    path    its module, below the package `holdfast`
    line    its line
    name    the constant, the function whose results are remembered, or the class that is called
    """

    path: str
    line: int
    name: str

    @property
    def key(self) -> str:
        return f"{self.path}:{self.name}"


def modules() -> Iterator[ModuleType]:
    """All modules of the program but those that run something when they are imported."""
    for module in pkgutil.walk_packages(holdfast.__path__, "holdfast."):
        if not module.name.endswith("__main__"):
            yield importlib.import_module(module.name)


def all_bounds() -> list[Bound]:
    """The bounds of all modules, each once."""
    bounds: dict[Bound, None] = {}
    for module in modules():
        for value in vars(module).values():
            bounds.update(dict.fromkeys(_bounds_in(value)))
    return sorted(bounds, key=lambda bound: bound.name.lower())


def _bounds_in(value: Any) -> Iterator[Bound]:
    """The bounds in the value of a module: one, several, or several with names."""
    if isinstance(value, Mapping):
        value = cast(Mapping[Any, Any], value).values()
    elif not isinstance(value, tuple):
        value = (value,)
    yield from (bound for bound in cast(Iterable[Any], value) if isinstance(bound, Bound))


def unnamed_limits() -> dict[str, set[str]]:
    """The rate limits of each service that have no bound, and the bounds that belong to no limit."""
    events, inventory = EventsSettings.model_validate({}), InventorySettings.model_validate({})
    names = {
        "events": {*events.limits, *events.limits_shared, *(f"refused {name}" for name in events.limits_refused)},
        "inventory": {*inventory.limits, *inventory.sign_in_shared_limits},
    }
    bounds = {"events": events_bounds.LIMITS, "inventory": inventory_bounds.LIMITS}
    return {service: names[service] ^ bounds[service].keys() for service in names}


def sources() -> Iterator[tuple[str, ast.Module]]:
    """The modules of the services, and of what they import from `holdfast_verify`, each with its syntax tree."""
    paths = [(path, path.relative_to(SOURCE)) for path in sorted(SOURCE.rglob("*.py"))]
    formats = Path(holdfast_verify.__file__).parent / "formats"
    paths += [(path, path.relative_to(formats.parents[1])) for path in sorted(formats.rglob("*.py"))]
    for path, below in paths:
        if not below.as_posix().startswith(NO_SERVICE):
            yield below.as_posix(), ast.parse(path.read_text(encoding="utf-8"))


def names_in_bounds() -> set[str]:
    """The names that stand in a `Bound`, or in something that makes one."""
    names: set[str] = set()
    for _, tree in sources():
        in_bounds: set[str] = set()
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and _called_name(node) in MAKERS:
                in_bounds |= _names(node)
        # Texts that several bounds have in common are constants of their own.
        for name, value in _assignments(tree):
            if name in in_bounds:
                in_bounds |= _names(value)
        names |= in_bounds
    return names


def limits_without_bound() -> list[Limited]:
    """What has a limit that no `Bound` names."""
    named = names_in_bounds()
    return [
        limited
        for path, tree in sources()
        for limited, constants in _limited_things(path, tree)
        if limited.key not in EXCEPTIONS and not constants & named
    ]


def known_limits() -> set[str]:
    """The keys of all that has a limit, to find entries of `NOT_SHARED` and `SMALL_CACHES` that are not needed."""
    return {limited.key for path, tree in sources() for limited, _ in _limited_things(path, tree)}


def _limited_things(path: str, tree: ast.Module) -> Iterator[tuple[Limited, set[str]]]:
    """What has a limit in a module, each with the constants that limit it."""
    for name, value in _assignments(tree):
        # What is made by a call is something else than a number.
        if CONSTANT.fullmatch(name) and not isinstance(value, ast.Call):
            yield Limited(path, value.lineno, name), {name}
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            for decorator in node.decorator_list:
                if isinstance(decorator, ast.Call) and _called_name(decorator) == "lru_cache":
                    yield Limited(path, node.lineno, node.name), _names(decorator)
        elif isinstance(node, ast.Call) and _has_limit(node):
            yield Limited(path, node.lineno, _called_name(node)), _names(node)


def _assignments(tree: ast.Module) -> Iterator[tuple[str, ast.expr]]:
    """The constants of a module, each with what it is."""
    for node in tree.body:
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                yield name, value
            case ast.Assign(targets=[ast.Tuple(elts=targets)], value=value):
                yield from ((target.id, value) for target in targets if isinstance(target, ast.Name))
            case ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value):
                yield name, value
            case _:
                pass


def _has_limit(call: ast.Call) -> bool:
    """Whether a call makes something with a limit."""
    match ast.unparse(call.func).partition("[")[0] if _called_name(call) == "Queue" else _called_name(call):
        case "Semaphore" | "BoundedSemaphore" | "ThreadPoolExecutor" | "ProcessPoolExecutor":
            return True
        case "LRUCache" | "TTLCache" | "LFUCache" | "TLRUCache":
            return True
        case "asyncio.Queue":
            return bool(call.args or call.keywords)
        case "Limits":
            return any(keyword.arg == "max_connections" for keyword in call.keywords)
        case "deque":
            return any(keyword.arg == "maxlen" for keyword in call.keywords) or len(call.args) > 1
        case _:
            return False


def _called_name(call: ast.Call) -> str:
    function = call.func.value if isinstance(call.func, ast.Subscript) else call.func
    return (
        function.attr if isinstance(function, ast.Attribute) else function.id if isinstance(function, ast.Name) else ""
    )


def _names(node: ast.AST) -> set[str]:
    return {part.id for part in ast.walk(node) if isinstance(part, ast.Name)}


def settings_with_defaults() -> Mapping[str, str]:
    """The default of each setting that is a number, by its variable."""
    fields = {**InventorySettings.model_fields, **EventsSettings.model_fields}
    return {
        str(field.validation_alias): f"{field.default:,}" for field in fields.values() if type(field.default) is int
    }


NUMBER = re.compile(r"(?<![\w`/.,])\d{4,}(?![\w`])")
SETTING = re.compile(r"`([A-Z][A-Z_]+)`")
NONE = re.compile(r"^none\b")

HEADINGS = {"both": "Both services", "events": "Events", "inventory": "Inventory"}

INTRODUCTION = """\
# Limits, and who shares them
<!-- python -m tests.programs.bounds -->

What many callers use at the same time has a limit, and each caller has [a share of
it](../decisions/0095-shared-limits-have-a-share-for-each-address.md) that others cannot take. Words in capitals are
[settings](../settings.md), with their defaults.

| column | meaning |
|---|---|
| All together | the limit in one process, at the same time. "Reserved": what strangers cannot use up |
| An organizer or shop | the share of one of them, with all its keys, apps and people |
| An address | the share of one IPv4 address, or of one IPv6 network of /64; "a /48" has many of these |
| What one stranger can do | the most that a caller without a credential, with one address or /48, can do to others |

* "In turns": no owner has a second turn before each owner that waits has had one.
* "Gives way": when all are taken, the address with the most gives one to an address with fewer.
* "Unconfirmed organizer": a stranger can register a few in an hour, and has their shares.
* "No share": one owner has no limit. An empty cell: the column does not apply.
* Rate limits ("an hour", "a minute") are counted in each process, or in all together with `RATE_LIMIT_STORAGE_URL`.
* Name a proxy in front in `TRUSTED_PROXIES`. Otherwise all callers have its address.

Limits of these kinds follow one rule each. Only the first kind has tables below:

"""


class Group(NamedTuple):
    """Bounds of which most columns are the same: they have a short table of their own.

    title                               its heading
    text                                what the other columns would say of each; it stands in the introduction
    columns                             the headings of the columns, each with the member of a bound that stands in it
    listed                              whether the page has tables of its bounds
    total, tenant, address, stranger    how these members of its bounds begin
    """

    title: str
    text: str
    columns: Mapping[str, str]
    listed: bool = False
    total: str = "none"
    tenant: str = "-"
    address: str = "-"
    stranger: str = "Nothing: each address is counted for itself."

    def includes(self, bound: Bound) -> bool:
        """Whether a bound is one of the group; its columns may say anything."""
        return bound.reserved == "-" and all(
            name in self.columns.values() or getattr(bound, name).startswith(getattr(self, name))
            for name in ("total", "tenant", "address", "stranger")
        )


GROUPS = (
    Group(
        "What strangers cannot cause",
        "only organizers, merchants, partners and the service itself can.",
        {"All together": "total", "An organizer or shop": "tenant"},
        listed=True,
        address="none",
        stranger=NOT_BY_STRANGERS,
    ),
    Group(
        "Limits of an address",
        f"[settings](../settings.md). Each address is counted for itself; a /48 has {WIDE_SHARE} times as many.",
        {"An address": "address"},
    ),
    Group(
        "Limits of a credential",
        "settings. All keys of an organizer together have `API_ORGANIZER_RATE_FACTOR` times the limit of a key.",
        {"An organizer or shop": "tenant"},
        stranger="Nothing: each credential is counted for itself.",
    ),
    Group(
        "Quotas of an organizer",
        "settings. A stranger can use as much for each organizer that it registers.",
        {"An organizer": "tenant"},
        address="none: a stranger who registers an organizer has its share",
        stranger="Room on the disk: as much for each organizer that it registers.",
    ),
    Group(
        "Caches",
        "a stranger can only have what others use dropped, and made again.",
        {"All together": "total"},
        tenant="none",
        address="none",
        stranger="Time: what others use is dropped, and is ",
    ),
)

HEAD = """\
| What | All together | An organizer or shop | An address | What one stranger can do |
|---|---|---|---|---|"""


def page() -> str:
    """The text of the page."""
    groups = "".join(f"* **{group.title}**: {_cell(group.text)}\n" for group in GROUPS)
    return _cell(INTRODUCTION) + groups + "\n" + "\n\n".join(_section(service) for service in HEADINGS) + "\n"


def _section(service: str) -> str:
    """The tables of a service: what has shares, and each group."""
    bounds = [bound for bound in all_bounds() if bound.service == service]
    rows = [_row(bound) for bound in bounds if not any(group.includes(bound) for group in GROUPS)]
    tables = ["\n".join([f"## {HEADINGS[service]}", HEAD, *rows])]
    for group in (group for group in GROUPS if group.listed):
        if short := [_short_row(bound, group) for bound in bounds if group.includes(bound)]:
            columns = ["What", *group.columns]
            head = [f"| {' | '.join(columns)} |", "|---" * len(columns) + "|"]
            tables.append("\n".join([f"**{group.title}**", "", *(head if len(columns) > 2 else []), *short]))
    return "\n\n".join(tables)


def _short_row(bound: Bound, group: Group) -> str:
    first, *others = (
        _cell(text) for text in (bound.name, *(_share(bound, member) for member in group.columns.values()))
    )
    return f"* {first}: {others[0]}" if len(others) == 1 else f"| {' | '.join([first, *others])} |"


def _row(bound: Bound) -> str:
    total = _share(bound, "total") + ("" if bound.reserved == "-" else f". Reserved: {bound.reserved}")
    cells = (bound.name, total, _share(bound, "tenant"), _share(bound, "address"), bound.stranger)
    return "|" + "".join(f" {_cell(text)} |" if text != "-" else " |" for text in cells)


def _share(bound: Bound, member: str) -> str:
    """What a bound says of one owner, or of all of them."""
    return NONE.sub("no limit" if member == "total" else "no share", getattr(bound, member))


def _cell(text: str) -> str:
    defaults = settings_with_defaults()
    text = NUMBER.sub(lambda match: f"{int(match[0]):,}", text)
    return SETTING.sub(lambda match: f"`{match[1]}` ({defaults[match[1]]})" if match[1] in defaults else match[0], text)


def names_twice(bounds: Sequence[Bound]) -> list[str]:
    """The names that two bounds of one service have."""
    names = [(bound.service, bound.name) for bound in bounds]
    return [name for service, name in names if names.count((service, name)) > 1]


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
