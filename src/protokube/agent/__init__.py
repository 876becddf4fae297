"""The agent of one master, a reconcile loop. `sync` lists the steps; each folder below holds the steps of one concern.

Not here: decisions that need no round (`members`, `records`, `manifests`), and anything that knows a vendor.
"""
