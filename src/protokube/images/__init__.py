"""Container images: built from programs of this machine, read from archives, exported, imported by containerd's client.

Not here: which images a cluster has, and how they reach its hosts (`local.node`, `local.loading`).
"""
