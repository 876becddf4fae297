"""etcd members: what lies on a volume, whether creation is still open, and what may be started.

Pure. The hard part is never to mistake a lost file for a new cluster: `new` needs two positive answers (the store's and
the provider's) that creation is open, and everything missing, unreadable or contradictory means that it is closed.
"""
