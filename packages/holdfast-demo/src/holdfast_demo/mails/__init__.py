"""A viewer of the mails that are written to files, for demonstrations on one machine."""
