"""`protokube expose`: ports of this machine that lead to Services of a local cluster.

Not here: who listens and connects (`local.cloud.exposed`), and what a Service is (`kube.services`).
"""
