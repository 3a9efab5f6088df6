"""The pages on which people register, and see their registration."""
