"""Draws: an order that no person can choose or foresee, and that everyone can compute again."""
