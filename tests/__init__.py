"""The tests, and the tools that they use."""

import gc
import os
import sys

if "pytest" in sys.modules:
    # Tests start hundreds of processes, each of which would compile every module anew. This is said before the services
    # are imported: so the process that starts the workers compiles them once, for the workers and for the next run.
    os.environ["PYTHONDONTWRITEBYTECODE"] = ""
    sys.dont_write_bytecode = False

    # To import and collect the tests makes many objects and little garbage. `conftest.py` enables it again.
    gc.disable()
