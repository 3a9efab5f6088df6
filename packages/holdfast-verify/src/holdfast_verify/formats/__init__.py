"""The formats of public logs: trees, signed notes, proofs, entries, receipts and draws."""
