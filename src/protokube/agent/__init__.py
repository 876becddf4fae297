"""The agent: one master, round after round. `sync` lists the steps; each room below holds the steps of one concern.

Not here: decisions that need no round (`members`, `records`, `manifests`), and anything that knows a vendor.
"""
