"""Events, registrations and waiting rooms. Start reading at `api.py`."""
