"""Commands for operators that concern both services, one file each: `holdfast check`, `backup`, `config` and others."""
