"""The Admin API of the platform: its queries and mutations, bulk operations, and what a request costs."""
