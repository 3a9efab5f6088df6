"""What `holdfast check` looks at in both services. Each service has further checks in its `checks.py`."""
