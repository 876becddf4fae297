"""Infrastructure providers: a folder for each kind, with its Protocol in `__init__` and one file per vendor."""
