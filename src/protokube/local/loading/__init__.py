"""Images that a user loads into a local cluster: stored for future hosts, imported on running hosts.

Not here: how archives are read and validated (`images`).
"""
