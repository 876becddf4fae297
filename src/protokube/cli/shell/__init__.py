"""`protokube shell`: a shell or a command in a host of a local cluster.

Not here: how the host is entered (`local.host.entering`).
"""
