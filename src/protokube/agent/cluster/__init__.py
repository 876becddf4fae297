"""What the agent does through the Kubernetes API: add-ons, Nodes, certificate signing requests, the pod network.

Not here: what an add-on consists of (`addons`, pure), and controllers that watch (`controllers`).
"""
