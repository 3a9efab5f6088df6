import sys

import structlog

log = structlog.get_logger()
print("rich was imported:", "rich" in sys.modules)
