"""Container images made from programs of this machine, and containerd's client to import them.

Not here: images that a person brings (`local.loading`).
"""
