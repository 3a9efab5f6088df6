"""Draws: an order that nobody can choose or foresee, and that anybody can compute again."""
