"""While a program is imported nothing looks for garbage; afterwards it is as before."""

import gc
import importlib

import pytest

from holdfast.kit.process.startup import importing


def test_garbage_is_collected_again_after_an_import_though_it_failed() -> None:
    with importing():
        assert not gc.isenabled()
    assert gc.isenabled()

    with pytest.raises(ModuleNotFoundError), importing():
        importlib.import_module("holdfast.nowhere")

    assert gc.isenabled()


def test_a_disabled_garbage_collector_stays_disabled_after_importing() -> None:
    gc.disable()
    try:
        with importing():
            pass
        assert not gc.isenabled()
    finally:
        gc.enable()
