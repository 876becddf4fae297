"""One machine, from a bare OS image to an installed kubelet and agent: what should be true of it, and making it so.

Nothing of a cluster is decided here, and nothing is asked of an API: a machine gets its setup with its launch data.
"""
