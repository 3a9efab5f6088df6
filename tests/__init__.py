"""The tests, and the tools that they use."""

import gc
import sys

if "pytest" in sys.modules:
    # To import and collect the tests makes many objects and little garbage. `conftest.py` enables it again.
    gc.disable()
