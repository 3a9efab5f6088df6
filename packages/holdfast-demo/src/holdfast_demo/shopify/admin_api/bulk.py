"""Bulk operations: a query over all objects, answered by a file with a line for each object."""

import asyncio
import json
import secrets
from collections.abc import Callable, Generator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, cast

from graphql import (
    ExecutionResult,
    FieldNode,
    FragmentDefinitionNode,
    GraphQLError,
    OperationDefinitionNode,
    OperationType,
    SelectionSetNode,
    parse,
    validate,
)

from holdfast_demo.shopify import payloads
from holdfast_demo.shopify.admin_api import queries
from holdfast_demo.shopify.admin_api.connections import Fields, Paging
from holdfast_demo.shopify.admin_api.cost import execute, schema
from holdfast_demo.shopify.errors import UserErrors, user_error
from holdfast_demo.shopify.model import Bulk, Shop, parse_gid
from holdfast_demo.shopify.platform_state import PlatformState
from holdfast_demo.shopify.store import RecordQuery

MAX_CONCURRENT_OPERATIONS = 5
MAX_CONNECTIONS = 5
MAX_DEPTH = 2
BATCH_SIZE = 25

UNFINISHED = ("CREATED", "RUNNING", "CANCELING")


class Bulks:
    """Runs bulk operations. For tests:

    hold          no operation proceeds while this is true
    break_after   how many objects the next operation reads until it fails; None: it does not fail
    """

    def __init__(self, platform: PlatformState, path: Path | None) -> None:
        self._platform = platform
        self._temporary = None if path else TemporaryDirectory(prefix="holdfast-double-")
        self.directory = path or Path(self._temporary.name if self._temporary else "")
        self.break_after: int | None = None
        self._is_held = False
        self._change_signal = asyncio.Event()

    @property
    def hold(self) -> bool:
        return self._is_held

    @hold.setter
    def hold(self, is_held: bool) -> None:
        self._is_held = is_held
        self._change_signal.set()

    def close(self) -> None:
        if self._temporary:
            self._temporary.cleanup()

    def begin(self, shop: Shop, query: str, *, grouped: bool) -> Bulk:
        """A new operation. Raises `UserErrors`."""
        _require_valid(query)
        running = [bulk for bulk in self._platform.store.select(Bulk, shop.domain) if bulk.status in UNFINISHED]
        if len(running) >= MAX_CONCURRENT_OPERATIONS:
            message = (
                f"At most {MAX_CONCURRENT_OPERATIONS} bulk operations run at once; try again when one has completed."
            )
            raise UserErrors(user_error(message, "LIMIT_REACHED"))
        now = self._platform.now()
        bulk = self._platform.store.put(shop.domain, Bulk(query=query, grouped=grouped, created=now, updated=now))
        self._change_signal.set()
        return bulk

    def cancel(self, domain: str, id: str) -> Bulk:
        """Stop an operation. Raises `UserErrors`."""
        bulk = self._platform.store.find(Bulk, domain, parse_gid(id, "BulkOperation"))
        if bulk is None:
            raise UserErrors(user_error("Bulk operation does not exist", None, "id"))
        if bulk.status not in UNFINISHED:
            message = f"A bulk operation cannot be canceled when it is {bulk.status.lower()}"
            raise UserErrors(user_error(message, None))
        bulk.status = "CANCELING"
        self._platform.store.put(domain, bulk)
        self._change_signal.set()
        return bulk

    async def run(self) -> None:
        """Run operations until the task is cancelled."""
        while True:
            self._change_signal.clear()
            for shop in self._platform.shops():
                for bulk in self._platform.store.select(Bulk, shop.domain, RecordQuery(by="id")):
                    if bulk.status in UNFINISHED and not self._is_held:
                        await self._do(shop.domain, bulk)
            await self._change_signal.wait()

    async def _do(self, domain: str, bulk: Bulk) -> None:
        if bulk.status == "CANCELING":
            self._end(domain, bulk)
            return
        document = parse(bulk.query, no_location=True)
        paging = Paging(bulk=True)
        paging.max_count = BATCH_SIZE
        name = f"{bulk.id}-{secrets.token_hex(16)}.jsonl"
        bulk.status, bulk.objects, bulk.roots = "RUNNING", 0, 0
        self._platform.store.put(domain, bulk)
        self.directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        with (self.directory / name).open("wb") as file:
            while not paging.ended and bulk.error is None and bulk.status == "RUNNING":
                result = self._step(domain, document, paging)
                bulk.error = "ACCESS_DENIED" if result is None or result.errors else None
                selected = _operation(document.definitions).selection_set
                lines = list(_lines(selected, result.data or {}, None, grouped=bulk.grouped)) if result else []
                file.writelines(lines)
                bulk.objects += len(lines)
                bulk.roots += sum(b'"__parentId":' not in line for line in lines)
                if self.break_after is not None and bulk.objects >= self.break_after:
                    bulk.error, self.break_after = "INTERNAL_SERVER_ERROR", None
                await self._pause(domain, bulk)
            bulk.size = file.tell()
        bulk.file = f"{self._platform.at(domain)}/bulk/{name}"
        self._end(domain, bulk)

    def _step(self, domain: str, document: Any, paging: Paging) -> ExecutionResult | None:
        shop = self._platform.find_shop(domain)
        if shop is None or not shop.installed:
            return None
        return execute(document, queries.root(self._platform, shop, paging))

    async def _pause(self, domain: str, bulk: Bulk) -> None:
        """Yield to other tasks, and check whether the operation is to stop."""
        await asyncio.sleep(0)
        while self._is_held:
            self._change_signal.clear()
            await self._change_signal.wait()
        present = self._platform.store.find(Bulk, domain, bulk.id)
        if present and present.status == "CANCELING":
            bulk.status = "CANCELING"
        self._platform.store.put(domain, bulk)

    def _end(self, domain: str, bulk: Bulk) -> None:
        bulk.completed = bulk.updated = self._platform.now()
        bulk.status = "CANCELED" if bulk.status == "CANCELING" else "FAILED" if bulk.error else "COMPLETED"
        with self._platform.happening():
            self._platform.store.put(domain, bulk)
            self._platform.send_message(domain, "bulk_operations/finish", payloads.bulk(bulk))


def _operation(definitions: Sequence[Any]) -> OperationDefinitionNode:
    return next(definition for definition in definitions if isinstance(definition, OperationDefinitionNode))


def _require_valid(query: str) -> None:
    """Raises `UserErrors` for a query that cannot be run in bulk."""
    try:
        document = parse(query, no_location=True, max_tokens=5000)
    except GraphQLError as error:
        raise _invalid(f"Invalid bulk query: {error.message}") from error
    if errors := validate(schema(), document):
        raise _invalid(f"Invalid bulk query: {errors[0].message}")
    operations = [definition for definition in document.definitions if isinstance(definition, OperationDefinitionNode)]
    if len(operations) != 1 or operations[0].operation != OperationType.QUERY:
        raise _invalid("Bulk queries are exactly one query.")
    if any(isinstance(definition, FragmentDefinitionNode) for definition in document.definitions):
        raise _invalid("The double knows no fragments in bulk queries.")
    roots = [field.name.value for field in _fields(operations[0].selection_set)]
    if set(roots) & {"node", "nodes"} or len(roots) != 1:
        raise _invalid("Bulk queries have one field at the top, which is neither `node` nor `nodes`.")
    depths = list(_connections(operations[0].selection_set, 0, None))
    if not depths:
        raise _invalid("Bulk queries must contain at least one connection.")
    if len(depths) > MAX_CONNECTIONS:
        raise _invalid(f"Bulk queries cannot contain more than {MAX_CONNECTIONS} connections.")
    if max(depths) > MAX_DEPTH:
        raise _invalid(f"Bulk queries cannot contain connections with a nesting depth greater than {MAX_DEPTH}.")


def _invalid(message: str) -> UserErrors:
    return UserErrors(user_error(message, "INVALID", "query"))


def _fields(selected: SelectionSetNode | None) -> list[FieldNode]:
    return [selection for selection in selected.selections if isinstance(selection, FieldNode)] if selected else []


def _field_named(selected: SelectionSetNode | None, name: str) -> FieldNode | None:
    return next((field for field in _fields(selected) if field.name.value == name and field.alias is None), None)


def _node_of(field: FieldNode) -> FieldNode | None:
    """The field `node` of a connection; None if the field is no connection."""
    edges = _field_named(field.selection_set, "edges")
    return edges and _field_named(edges.selection_set, "node")


def _connections(selected: SelectionSetNode | None, depth: int, parent: SelectionSetNode | None) -> Generator[int]:
    """Yield the depths of all connections. Raises `UserErrors`."""
    for field in _fields(selected):
        node = _node_of(field)
        if node is None:
            if _field_named(field.selection_set, "nodes") or _field_named(field.selection_set, "edges"):
                raise _invalid("Connections in bulk queries select `edges { node { … } }`.")
            yield from _connections(field.selection_set, depth, parent)
            continue
        if depth and not _field_named(parent, "id"):
            raise _invalid(
                "The parent 'node' field for a nested connection must select the 'id' field without an alias."
            )
        yield depth + 1
        yield from _connections(node.selection_set, depth + 1, node.selection_set)


def _lines(selected: SelectionSetNode, data: Fields, parent: str | None, *, grouped: bool) -> Generator[bytes]:
    """Yield the lines of the connections in an object; nested lines follow each line if grouped, else all lines."""
    later: list[Callable[[], Generator[bytes]]] = []
    for field, values in _connections_in(selected, data):
        node = _node_of(field)
        assert node is not None
        assert node.selection_set is not None
        for edge in values["edges"]:
            yield json.dumps(_line(node.selection_set, edge["node"], parent)).encode() + b"\n"
            below = _nested_lines(node.selection_set, edge["node"], grouped=grouped)
            if grouped:
                yield from below()
            else:
                later.append(below)
    for nested_lines in later:
        yield from nested_lines()


def _nested_lines(selected: SelectionSetNode, node: Fields, *, grouped: bool) -> Callable[[], Generator[bytes]]:
    return lambda: _lines(selected, node, node.get("id"), grouped=grouped)


def _connections_in(selected: SelectionSetNode | None, data: Fields) -> Generator[tuple[FieldNode, Fields]]:
    """Yield the connections in an object and in its members."""
    for field in _fields(selected):
        value: Any = data.get(field.alias.value if field.alias else field.name.value)
        if isinstance(value, dict):
            if _node_of(field):
                yield field, cast(Fields, value)
            else:
                yield from _connections_in(field.selection_set, cast(Fields, value))


def _line(selected: SelectionSetNode, node: Fields, parent: str | None) -> Fields:
    """An object without its connections."""
    line: Fields = {}
    for field in _fields(selected):
        name = field.alias.value if field.alias else field.name.value
        if _node_of(field):
            continue
        value: Any = node[name]
        if field.selection_set and isinstance(value, dict):
            value = _line(field.selection_set, cast(Fields, value), None)
        line[name] = value
    return line | ({"__parentId": parent} if parent else {})
