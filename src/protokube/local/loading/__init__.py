"""Images that a user loads into a local cluster: validated, stored for future hosts, imported on running hosts.

Not here: images that are built here (`local.image`).
"""
