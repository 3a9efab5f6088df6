"""The commands `holdfast events …` that only the events service has."""
