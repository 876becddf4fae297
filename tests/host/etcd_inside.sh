#!/usr/bin/env bash
# Runs inside fresh mount, network and PID namespaces: start etcd on the file, look at it, say what was seen as JSON.
# Everything it mounts and starts ends with the namespaces.
set -euo pipefail
work=$1 binary=$2 host=$3

mount --make-rprivate /
ip link set lo up
printf '127.0.0.1 localhost %s\n' "$host" > "$work/hosts"
mount --bind "$work/hosts" /etc/hosts
cp "$binary" "$work/etcd-binary"
mount -t tmpfs tmpfs /srv && mkdir /srv/kubernetes && cp "$work"/pki/* /srv/kubernetes/
mount -t tmpfs tmpfs /var && mkdir -p /var/etcd && chmod 700 /var/etcd

ETCD_CONFIG_FILE="$work/etcd.yaml" "$work/etcd-binary" > "$work/etcd.log" 2>&1 &
for _ in $(seq 150); do
    health=$(curl -s http://127.0.0.1:2390/health || true)
    case $health in *'"true"'*) break ;; esac
    sleep 0.1
done

ask() { # ask [--cert FILE --key FILE]: does etcd answer a request over TLS?
    if curl -s -o "$work/answer" --cacert /srv/kubernetes/etcd-client-ca.crt "$@" "https://$host:4001/version"
    then echo answered; else echo refused; fi
}
with=$(ask --cert /srv/kubernetes/kube-apiserver-etcd-client.crt --key /srv/kubernetes/kube-apiserver-etcd-client.key)
version=$(sed 's/.*"etcdserver":"\([^"]*\)".*/\1/' "$work/answer")
without=$(ask)
peer=$(ask --cert /srv/kubernetes/etcd-us-east-1a-peer.crt --key /srv/kubernetes/etcd-us-east-1a-peer.key)
kill %1 && wait %1 2>/dev/null || true
case $health in *'"true"'*) health=true ;; *) health=false ;; esac
printf '{"health": "%s", "version": "%s", "with certificate": "%s", "without certificate": "%s", "with a peer certificate": "%s"}\n' \
    "$health" "$version" "$with" "$without" "$peer"
