"""`protokube logs`: show and follow the logs of hosts, members and components of a local cluster.

Not here: where logs lie and how they are read (`local.logs`).
"""
