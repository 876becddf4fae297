"""Disks of the local cloud: image files, loop devices, and their mounts in all mount namespaces.

Not here: which host holds a volume (`local.cloud.volumes`), and formatting or mounting for etcd (the agent).
"""
