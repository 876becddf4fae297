"""The daemon that is the cloud: sockets, hosts and groups, volumes and who holds them, cleaning up.

Not here: how a host is made (`local.host`), and what status shows of it (`local.view`).
"""
