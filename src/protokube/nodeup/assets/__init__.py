"""Assets: files that are identified by their digest alone, from mirrors, from the cache, or from a bundle.

Not here: which assets a machine needs (`model`), and what is done with one (`tasks`).
"""
