"""The daemon of the local cloud: sockets, hosts, groups, volumes with their holders, and cleanup.

Not here: creating a host (`local.host`), and what status shows of it (`local.view`).
"""
