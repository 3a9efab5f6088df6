"""Modules that use internals of a library name its version, and that version is installed."""

import ast
import inspect
import re
from importlib.metadata import requires, version

import pytest
from psycopg import AsyncConnection, AsyncCursor, AsyncPipeline
from psycopg_pool import pool_async
from typer.core import _TyperParameter  # pyright: ignore[reportPrivateUsage]
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

from holdfast.kit.compat import (
    jinja_environment,
    prometheus_histogram,
    psycopg_pipeline,
    psycopg_pool_lock,
    smtp_exchange,
    typer_missing_values,
    uvicorn_protocol,
)

LIBRARIES = [
    ("psycopg", psycopg_pipeline.VERSION),
    ("psycopg-pool", psycopg_pool_lock.VERSION),
    ("prometheus-client", prometheus_histogram.VERSION),
    ("aiosmtplib", smtp_exchange.VERSION),
    ("jinja2", jinja_environment.VERSION),
    ("markupsafe", jinja_environment.MARKUPSAFE_VERSION),
    ("typer", typer_missing_values.VERSION),
    ("uvicorn", uvicorn_protocol.VERSION),
]


@pytest.mark.parametrize(("library", "written_for"), LIBRARIES)
def test_the_installed_library_has_the_version_that_the_module_was_written_for(library: str, written_for: str) -> None:
    assert version(library).startswith(f"{written_for}.")


@pytest.mark.parametrize(("library", "written_for"), LIBRARIES)
def test_no_later_version_can_be_installed(library: str, written_for: str) -> None:
    major, minor = map(int, written_for.split("."))
    [requirement] = [line for line in requires("holdfast-server") or () if re.match(rf"{library}(?![\w-])", line)]

    assert f"<{major}.{minor + 1}" in requirement


@pytest.mark.parametrize(
    ("function", "parameters"),
    [
        (AsyncCursor._maybe_prepare_gen, ["self", "pgq", "prepare", "binary"]),  # pyright: ignore[reportPrivateUsage]
        (AsyncPipeline._fetch_gen, ["self", "flush"]),  # pyright: ignore[reportPrivateUsage]
        (AsyncConnection.wait, ["self", "gen", "interval", "timeout"]),
        (_TyperParameter.process_value, ["self", "ctx", "value"]),  # pyright: ignore[reportPrivateUsage]
        (HttpToolsProtocol.connection_made, ["self", "transport"]),
        (HttpToolsProtocol.data_received, ["self", "data"]),
        (HttpToolsProtocol.on_headers_complete, ["self"]),
        (HttpToolsProtocol.on_message_complete, ["self"]),
        (HttpToolsProtocol.on_response_complete, ["self"]),
        (HttpToolsProtocol.timeout_keep_alive_handler, ["self"]),
        (HttpToolsProtocol.pause_writing, ["self"]),
        (HttpToolsProtocol.resume_writing, ["self"]),
    ],
    ids=lambda value: getattr(value, "__qualname__", None),
)
def test_functions_that_are_called_or_overridden_have_the_expected_parameters(
    function: object, parameters: list[str]
) -> None:
    assert callable(function)
    assert list(inspect.signature(function).parameters) == parameters


def test_the_locked_sections_of_the_pool_wait_only_to_hand_over_a_connection() -> None:
    tree = ast.parse(inspect.getsource(pool_async))
    sections = [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.AsyncWith) and ast.unparse(node.items[0].context_expr) == "self._lock"
    ]
    awaited = {
        ast.unparse(node.value)
        for section in sections
        for statement in section.body
        for node in ast.walk(statement)
        if isinstance(node, ast.Await)
    }

    assert len(sections) == 12
    assert awaited == {
        "self._get_ready_connection(timeout)",  # waits for nothing
        "self._waiting.popleft().set(conn)",  # the hand-over
        "self._signal_stop_worker()",  # when the pool closes
        "self._close_connection(conn)",  # when the pool is closed
    }


def test_the_state_of_a_request_has_the_members_that_are_set() -> None:
    source = inspect.getsource(RequestResponseCycle)

    for member in ("response_started", "response_complete", "waiting_for_100_continue", "message_event", "on_response"):
        assert re.search(rf"self\.{member}\b", source)
