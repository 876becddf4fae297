"""The local cloud: hosts, disks and names on one Linux machine, with the same interfaces as the big ones."""
