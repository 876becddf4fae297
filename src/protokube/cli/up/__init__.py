"""`protokube up`: the spec, the versions, what is there already, and waiting until it is ready.

Not here: the steps that make a cluster (`local.bringup`).
"""
