"""The audit of public logs: it replays their entries and finds what breaks a rule of the order."""
