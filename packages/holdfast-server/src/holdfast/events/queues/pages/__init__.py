"""The pages of waiting rooms. A waiting room is what visitors see of a queue."""
