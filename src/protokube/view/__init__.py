"""What can be seen of a cluster, as values, and what follows from it; `status`, `explain` and drills read it.

Not here: how it is shown (`cli.render`), how the local cloud is looked at (`local.view`), and anything that changes it.
"""
