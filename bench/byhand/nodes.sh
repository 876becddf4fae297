#!/usr/bin/env bash
# What a person who knows how would type to get three Ready nodes: three hosts in namespaces on a bridge, on each of them
# etcd, the control plane, containerd and a kubelet, all with TLS, as plain processes: no pods, no agent, no names, no
# disks, no kube-proxy. Everything is taken away at the end; what happened when is in files.
# Needs KUBERNETES and ETCD (folders of programs), RUNTIME (folders of containerd and runc, for the PATH), PLUGINS (of CNI),
# and an empty folder as its argument.
set -euo pipefail
dir=$1
net=nodes$$
hosts=(a b c)
declare -A address=([a]=10.79.0.11 [b]=10.79.0.12 [c]=10.79.0.13)
now() { date +%s.%N > "$dir/$1"; }
PATH="$RUNTIME:$PATH"

pids=()
take_away() {
    set +e
    kill -9 "${pids[@]}" 2>/dev/null
    wait 2>/dev/null
    for h in "${hosts[@]}"; do ip netns del "$net-$h" 2>/dev/null; done
    ip netns del "$net" 2>/dev/null
}
trap take_away EXIT

# network
ip netns add "$net"
ip -n "$net" link add br0 type bridge
ip -n "$net" link set br0 up
for h in "${hosts[@]}"; do
    ip netns add "$net-$h"
    ip -n "$net" link add "port-$h" type veth peer name eth0 netns "$net-$h"
    ip -n "$net" link set "port-$h" master br0 up
    ip -n "$net-$h" link set lo up
    ip -n "$net-$h" addr add "${address[$h]}/24" dev eth0
    ip -n "$net-$h" link set eth0 up
    ip -n "$net-$h" route add default via 10.79.0.1
    mkdir -p "$dir/$h"/{cni,log,run}
done

# certificates
openssl ecparam -name prime256v1 -genkey -noout -out "$dir/accounts.key"
openssl ec -in "$dir/accounts.key" -pubout -out "$dir/accounts.pub" 2>/dev/null
openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 365 -subj "/CN=ca" \
    -keyout "$dir/ca.key" -out "$dir/ca.crt" 2>/dev/null
sign() { # file, subject, address
    openssl req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj "$2" \
        -keyout "$dir/$1.key" -out "$dir/$1.csr" 2>/dev/null
    openssl x509 -req -in "$dir/$1.csr" -CA "$dir/ca.crt" -CAkey "$dir/ca.key" -CAcreateserial -days 365 \
        -extfile <(printf 'subjectAltName=DNS:localhost,DNS:kubernetes,IP:127.0.0.1,IP:%s\nextendedKeyUsage=serverAuth,clientAuth' "$3") \
        -out "$dir/$1.crt" 2>/dev/null
}
kubeconfig() { # file
    cat > "$dir/$1.kubeconfig" <<CONFIG
apiVersion: v1
kind: Config
clusters: [{name: c, cluster: {server: "https://127.0.0.1:6443", certificate-authority: $dir/ca.crt}}]
users: [{name: u, user: {client-certificate: $dir/$1.crt, client-key: $dir/$1.key}}]
contexts: [{name: c, context: {cluster: c, user: u}}]
current-context: c
CONFIG
}
for who in admin:/O=system:masters/CN=admin manager:/CN=system:kube-controller-manager scheduler:/CN=system:kube-scheduler; do
    sign "${who%%:*}" "${who#*:}" 127.0.0.1
    kubeconfig "${who%%:*}"
done
for h in "${hosts[@]}"; do
    sign "server-$h" "/CN=server" "${address[$h]}"
    sign "kubelet-$h" "/O=system:nodes/CN=system:node:$h" "${address[$h]}"
    kubeconfig "kubelet-$h"
done

# processes
begin() { # host, log, command
    local h=$1 log=$2
    shift 2
    nsenter --net="/run/netns/$net-$h" unshare --uts sh -c 'hostname "$1" && shift && exec "$@"' - "$h" "$@" \
        > "$dir/$h/$log.log" 2>&1 &
    pids+=($!)
}
members=$(for h in "${hosts[@]}"; do printf '%s,' "$h=https://${address[$h]}:2380"; done)
for h in "${hosts[@]}"; do
    tls=(--tls-cert-file "$dir/server-$h.crt" --tls-private-key-file "$dir/server-$h.key")
    begin "$h" etcd "$ETCD/etcd" --name "$h" --data-dir "$dir/$h/etcd" --logger zap --log-outputs stderr --pre-vote \
        --listen-peer-urls "https://${address[$h]}:2380" --initial-advertise-peer-urls "https://${address[$h]}:2380" \
        --listen-client-urls https://127.0.0.1:2379 --advertise-client-urls https://127.0.0.1:2379 \
        --initial-cluster "${members%,}" --initial-cluster-state new --initial-cluster-token "$net" \
        --cert-file "$dir/server-$h.crt" --key-file "$dir/server-$h.key" --trusted-ca-file "$dir/ca.crt" \
        --client-cert-auth --peer-cert-file "$dir/server-$h.crt" --peer-key-file "$dir/server-$h.key" \
        --peer-trusted-ca-file "$dir/ca.crt" --peer-client-cert-auth
    begin "$h" apiserver "$KUBERNETES/kube-apiserver" --etcd-servers https://127.0.0.1:2379 --etcd-cafile "$dir/ca.crt" \
        --etcd-certfile "$dir/admin.crt" --etcd-keyfile "$dir/admin.key" --client-ca-file "$dir/ca.crt" "${tls[@]}" \
        --service-account-issuer https://kubernetes --service-account-key-file "$dir/accounts.pub" \
        --service-account-signing-key-file "$dir/accounts.key" --authorization-mode Node,RBAC --allow-privileged \
        --service-cluster-ip-range 10.96.0.0/16 --advertise-address "${address[$h]}" --cert-dir "$dir/$h/certificates" \
        --kubelet-client-certificate "$dir/admin.crt" --kubelet-client-key "$dir/admin.key" --secure-port 6443
    begin "$h" manager "$KUBERNETES/kube-controller-manager" --kubeconfig "$dir/manager.kubeconfig" "${tls[@]}" \
        --allocate-node-cidrs --cluster-cidr 100.96.0.0/16 --use-service-account-credentials \
        --service-account-private-key-file "$dir/accounts.key" --root-ca-file "$dir/ca.crt"
    begin "$h" scheduler "$KUBERNETES/kube-scheduler" --kubeconfig "$dir/scheduler.kubeconfig" "${tls[@]}"
    cat > "$dir/$h/containerd.toml" <<CONFIG
version = 2
root = "$dir/$h/containerd"
state = "$dir/$h/run/containerd"
disabled_plugins = ["io.containerd.internal.v1.opt"]
[grpc]
address = "$dir/$h/run/containerd.sock"
[plugins."io.containerd.grpc.v1.cri"]
restrict_oom_score_adj = true
[plugins."io.containerd.grpc.v1.cri".cni]
bin_dir = "$PLUGINS"
conf_dir = "$dir/$h/cni"
CONFIG
    cat > "$dir/$h/cni/network.conflist" <<CONFIG
{"cniVersion": "0.4.0", "name": "pods", "plugins": [{"type": "bridge", "bridge": "pods", "isGateway": true,
 "ipam": {"type": "host-local", "ranges": [[{"subnet": "100.96.${address[$h]##*.}.0/24"}]]}}]}
CONFIG
    begin "$h" containerd unshare --mount containerd --config "$dir/$h/containerd.toml"
    cat > "$dir/$h/kubelet.yaml" <<CONFIG
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
authentication: {anonymous: {enabled: false}, webhook: {enabled: false}, x509: {clientCAFile: $dir/ca.crt}}
authorization: {mode: AlwaysAllow}
tlsCertFile: $dir/kubelet-$h.crt
tlsPrivateKeyFile: $dir/kubelet-$h.key
containerRuntimeEndpoint: unix://$dir/$h/run/containerd.sock
cgroupDriver: cgroupfs
cgroupsPerQOS: false
enforceNodeAllocatable: []
failSwapOn: false
failCgroupV1: false
volumePluginDir: $dir/$h/plugins
evictionHard: {memory.available: 1Mi, nodefs.available: 0%, nodefs.inodesFree: 0%, imagefs.available: 0%, imagefs.inodesFree: 0%}
CONFIG
    # It writes to kernel parameters and to folders of the machine: it finds others in their place.
    begin "$h" kubelet unshare --mount sh -ec "
        mount -t tmpfs tmpfs /var/lib; mkdir /var/lib/kubelet; mount --bind '$dir/$h/log' /var/log
        for each in vm/overcommit_memory:1 vm/panic_on_oom:0 kernel/panic:10 kernel/panic_on_oops:1 \
                kernel/keys/root_maxkeys:1000000 kernel/keys/root_maxbytes:25000000; do
            [ -e \"/proc/sys/\${each%:*}\" ] || continue
            echo \"\${each#*:}\" > /var/lib/value-\$(basename \"\${each%:*}\")
            mount --bind /var/lib/value-\$(basename \"\${each%:*}\") \"/proc/sys/\${each%:*}\"
        done
        until [ -S '$dir/$h/run/containerd.sock' ]; do sleep 0.02; done
        exec '$KUBERNETES/kubelet' --config '$dir/$h/kubelet.yaml' --kubeconfig '$dir/kubelet-$h.kubeconfig' \
            --hostname-override '$h' --node-ip '${address[$h]}'"
done

# quorum: a read through each member
export ETCDCTL_API=3 ETCDCTL_CACERT=$dir/ca.crt ETCDCTL_CERT=$dir/admin.crt ETCDCTL_KEY=$dir/admin.key
for h in "${hosts[@]}"; do
    until nsenter --net="/run/netns/$net-$h" "$ETCD/etcdctl" --endpoints https://127.0.0.1:2379 --dial-timeout 100ms \
        --command-timeout 500ms get ready >/dev/null 2>&1; do
        sleep 0.05
    done
done
now quorum

# three Ready nodes
ready() {
    nsenter --net="/run/netns/$net-a" "$KUBERNETES/kubectl" --kubeconfig "$dir/admin.kubeconfig" get nodes --request-timeout 5s \
        -o 'jsonpath={range .items[*]}{.status.conditions[?(@.type=="Ready")].status}{"\n"}{end}' 2>/dev/null | grep -c True
}
until [ "$(ready || true)" = 3 ]; do sleep 0.1; done
now ready
