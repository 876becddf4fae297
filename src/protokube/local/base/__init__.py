"""Shared by all packages of the local cloud: paths, private files, the database, system calls, the reactor.

Not here: anything that knows a host, a disk or a name.
"""
