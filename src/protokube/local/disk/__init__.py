"""Disks of the local cloud: image files, loop devices, and who on this machine has one mounted.

Not here: who holds a volume (`local.cloud.volumes`), and formatting or mounting for etcd (the agent does that).
"""
