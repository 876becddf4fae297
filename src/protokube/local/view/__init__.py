"""One look at a local cluster from outside, as values, and what follows from it.

Not here: how it is shown (`cli.render`), and anything that changes the cluster.
"""
