"""The local cloud: hosts, disks and DNS on one Linux machine, with the same interfaces as the public clouds.

This folder has the steps of `up` and its choices; each subpackage is one part of the cloud. The agents are elsewhere.
"""
