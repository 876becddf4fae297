"""Container images built from programs of this machine, and containerd's client to import them.

Not here: images that a user loads (`local.loading`).
"""
