"""The health check of the image: exits with 0 if a service answers `/healthz` at a usual port, else with 1."""

import sys
from http.client import HTTPConnection, HTTPException

PORTS = (8001, 8002)
TIMEOUT_SECONDS = 2


def is_alive(port: int) -> bool:
    connection = HTTPConnection("127.0.0.1", port, timeout=TIMEOUT_SECONDS)
    try:
        connection.request("GET", "/healthz")
        return connection.getresponse().status == 200
    except (OSError, HTTPException):
        return False
    finally:
        connection.close()


if __name__ == "__main__":
    sys.exit(not any(is_alive(port) for port in PORTS))
