"""What the agent does through the Kubernetes API: add-ons, Nodes, certificate requests, the network of pods.

Not here: what an add-on consists of (`addons`, pure), and controllers that watch (`controllers`).
"""
