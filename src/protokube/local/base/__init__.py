"""What every room of the local cloud uses: paths, private files, the database, system calls, the reactor.

Not here: anything that knows a host, a disk or a name.
"""
