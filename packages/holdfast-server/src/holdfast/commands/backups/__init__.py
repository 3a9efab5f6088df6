"""`holdfast backup`, `restore` and `move`: their options, what each of them does, and the files of a backup."""
