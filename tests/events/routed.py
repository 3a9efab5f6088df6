"""The operations of the events service with a route. The others are tools alone."""

from holdfast.events.api import OPERATIONS

ROUTED = [operation for operation in OPERATIONS if operation.route]
