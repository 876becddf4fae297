"""`protokube up`: choose the spec and the versions, check an existing cluster, and wait until it is ready.

Not here: the steps that create a cluster (`local.bringup`).
"""
