"""A host with the real kubelet on containerd: programs, images, units.

Not here: the kubelet's configuration (`config`), and pods without a kubelet (`local.pods`).
"""
