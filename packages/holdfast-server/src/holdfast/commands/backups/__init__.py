"""What `holdfast backup`, `restore` and `move` have in common: the files of a backup, and what services put in them."""
