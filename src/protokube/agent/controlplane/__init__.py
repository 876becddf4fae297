"""Static pods of this master, their keys and files, and the kubelet that runs them.

Not here: objects in the API (`agent.cluster`), and how a manifest looks (`manifests`, pure).
"""
