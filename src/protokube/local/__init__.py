"""The local cloud: hosts, disks and names on one Linux machine, with the same interfaces as the big ones.

Here the steps of `up` and what it chooses; each room below is one part of the cloud. Not here: the agents inside it.
"""
