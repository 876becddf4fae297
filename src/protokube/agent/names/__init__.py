"""DNS names that the agent writes: those of its etcd members, those of the API, or a hosts file where there is no zone.

Not here: which records result (`records`, pure), and names of annotated objects (`controllers.dns`).
"""
