"""The schema of a database: its migrations, its lineage, its functions, and copies of it."""
