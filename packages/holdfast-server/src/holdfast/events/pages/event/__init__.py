"""The page of an event."""
