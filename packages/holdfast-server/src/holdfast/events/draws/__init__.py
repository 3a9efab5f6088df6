"""Draws: an order that no person can choose or foresee, and that every person can compute again."""
