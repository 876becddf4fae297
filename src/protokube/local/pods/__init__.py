"""The built-in stand-in for a kubelet: static pods as processes of a host, with probes and back-off.

Not here: the real kubelet (`local.node`), and manifests themselves (`manifests`).
"""
