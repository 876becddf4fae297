"""Which flags of the components name files or folders: a component sees the folders of these, and nothing else.

Declared, not guessed from a name: a flag of a new version that looks like a path is listed here, or under `NO_PATHS`,
before a table with it passes the tests.
"""

from __future__ import annotations

READ = frozenset(
    {
        "admission-control-config-file", "audit-policy-file", "audit-webhook-config-file", "authentication-config",
        "authentication-kubeconfig", "authentication-token-webhook-config-file", "authorization-config",
        "authorization-kubeconfig", "authorization-policy-file", "authorization-webhook-config-file", "boot-id-file",
        "cert-dir", "client-ca-file", "cloud-config", "cluster-signing-cert-file", "cluster-signing-key-file",
        "cluster-signing-kube-apiserver-client-cert-file", "cluster-signing-kube-apiserver-client-key-file",
        "cluster-signing-kubelet-client-cert-file", "cluster-signing-kubelet-client-key-file",
        "cluster-signing-kubelet-serving-cert-file", "cluster-signing-kubelet-serving-key-file",
        "cluster-signing-legacy-unknown-cert-file", "cluster-signing-legacy-unknown-key-file", "config",
        "egress-selector-config-file", "encryption-provider-config", "etcd-cafile", "etcd-certfile", "etcd-keyfile",
        "flex-volume-plugin-dir", "kubeconfig", "kubelet-certificate-authority", "kubelet-client-certificate",
        "kubelet-client-key", "leader-migration-config", "log-dir", "log-file", "machine-id-file", "oidc-ca-file",
        "peer-ca-file", "policy-config-file", "proxy-client-cert-file", "proxy-client-key-file",
        "pv-recycler-pod-template-filepath-hostpath", "pv-recycler-pod-template-filepath-nfs",
        "requestheader-client-ca-file", "root-ca-file", "service-account-key-file",
        "service-account-private-key-file", "service-account-signing-key-file", "tls-cert-file",
        "tls-private-key-file", "tls-sni-cert-key", "token-auth-file", "tracing-config-file",
        "key-file",  # of the dns-controller
    }
)  # fmt: skip
"""The component reads there. Two files may share a value, as `certificate,key` of `tls-sni-cert-key` do."""
WRITTEN = frozenset({"audit-log-path"})
"""The component writes there, and gets the folder to itself."""
NO_PATHS = frozenset(
    {
        "authorization-always-allow-paths",  # of URLs
        "debug-socket-path",  # made by the component in a folder of its own
        "runtime-config", "use-legacy-policy-config",
        "write-config-to",  # such a component ends after writing
    }
)  # fmt: skip
