"""Seats: who gets one. Intake, settlement, seats that are held until they are paid, and drawn entries."""
