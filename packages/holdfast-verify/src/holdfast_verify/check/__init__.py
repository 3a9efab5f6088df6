"""The parts of `holdfast verify`: where a log is read, how its hashes and its receipts are checked, the report."""
