"""Look at a local cluster from outside: its cloud, its hosts' files, its store and etcd itself.

Not here: the values of a view and what follows from it (`view`), and anything that changes the cluster.
"""
