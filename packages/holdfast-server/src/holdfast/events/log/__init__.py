"""The public log of the order in which an event or a queue handed out its places."""
