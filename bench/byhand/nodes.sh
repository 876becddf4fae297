#!/usr/bin/env bash
# What a person who knows how would type to get three Ready nodes: three hosts in namespaces on a bridge, on each of them
# containerd and a kubelet, and in static pods of that kubelet the programs of a master that is a node: two etcd members,
# the control plane and kube-proxy, all with TLS. Each node gets its CNI configuration once it has its range of pod
# addresses. No agent, no names, no disks, no replacements. Everything is taken away at the end; what happened when is in
# files.
# Needs KUBERNETES and ETCD (folders of programs, for clients and the kubelet), RUNTIME (folders of containerd and runc,
# for the PATH), PLUGINS (of CNI), IMAGES (a root of containerd that has the images), their names in IMAGE_PAUSE,
# IMAGE_ETCD, IMAGE_APISERVER, IMAGE_MANAGER, IMAGE_SCHEDULER and IMAGE_PROXY, and an empty folder as its argument.
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
    exec 2>/dev/null # bash would tell of each host that it was killed
    kill -9 "${pids[@]}" 2>/dev/null # the first processes of their PID namespaces: everything inside ends with them
    wait 2>/dev/null
    for h in "${hosts[@]}"; do
        for task in "$dir/$h"/run/containerd/io.containerd.runtime.v2.task/k8s.io/*; do
            for cgroup in /sys/fs/cgroup/{,*/}k8s.io/"${task##*/}"; do
                # the last of its processes may still be ending
                for _ in {1..50}; do { [ ! -d "$cgroup" ] || rmdir "$cgroup" 2>/dev/null; } && break; sleep 0.1; done
            done
        done
    done
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
    mkdir -p "$dir/$h"/{cni,log,run,manifests,etcd,etcd-events}
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
for who in admin:/O=system:masters/CN=admin manager:/CN=system:kube-controller-manager scheduler:/CN=system:kube-scheduler \
    proxy:/CN=system:kube-proxy; do
    sign "${who%%:*}" "${who#*:}" 127.0.0.1
    kubeconfig "${who%%:*}"
done
for h in "${hosts[@]}"; do
    sign "server-$h" "/CN=server" "${address[$h]}"
    sign "kubelet-$h" "/O=system:nodes/CN=system:node:$h" "${address[$h]}"
    kubeconfig "kubelet-$h"
done

# static pods
pod() { # host, name, image, command
    local h=$1 name=$2 image=$3
    shift 3
    {
        cat <<POD
{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "$name", "namespace": "kube-system"}, "spec": {
 "hostNetwork": true, "priorityClassName": "system-node-critical", "volumes": [{"name": "all", "hostPath": {"path": "$dir"}}],
 "containers": [{"name": "$name", "image": "$image", "securityContext": {"privileged": true},
  "volumeMounts": [{"name": "all", "mountPath": "$dir"}],
POD
        printf '  "command": ["%s"' "$1"
        shift
        printf ', "%s"' "$@"
        echo ']}]}}'
    } > "$dir/$h/manifests/.$name"
    mv "$dir/$h/manifests/.$name" "$dir/$h/manifests/$name.json"
}
etcd() { # host, name, port of clients, port of peers
    local h=$1 members
    members=$(for each in "${hosts[@]}"; do printf '%s,' "$each=https://${address[$each]}:$4"; done)
    pod "$h" "$2" "$IMAGE_ETCD" /usr/local/bin/etcd --name "$h" --data-dir "$dir/$h/$2" --logger zap \
        --listen-peer-urls "https://${address[$h]}:$4" --initial-advertise-peer-urls "https://${address[$h]}:$4" \
        --listen-client-urls "https://127.0.0.1:$3" --advertise-client-urls "https://127.0.0.1:$3" \
        --initial-cluster "${members%,}" --initial-cluster-state new --initial-cluster-token "$net-$2" \
        --cert-file "$dir/server-$h.crt" --key-file "$dir/server-$h.key" --trusted-ca-file "$dir/ca.crt" \
        --client-cert-auth --peer-cert-file "$dir/server-$h.crt" --peer-key-file "$dir/server-$h.key" \
        --peer-trusted-ca-file "$dir/ca.crt" --peer-client-cert-auth
}
for h in "${hosts[@]}"; do
    tls=(--tls-cert-file "$dir/server-$h.crt" --tls-private-key-file "$dir/server-$h.key")
    etcd "$h" etcd 2379 2380
    etcd "$h" etcd-events 2382 2381
    pod "$h" apiserver "$IMAGE_APISERVER" /usr/local/bin/kube-apiserver --etcd-servers https://127.0.0.1:2379 \
        --etcd-servers-overrides '/events#https://127.0.0.1:2382' --etcd-cafile "$dir/ca.crt" \
        --etcd-certfile "$dir/admin.crt" --etcd-keyfile "$dir/admin.key" --client-ca-file "$dir/ca.crt" "${tls[@]}" \
        --service-account-issuer https://kubernetes --service-account-key-file "$dir/accounts.pub" \
        --service-account-signing-key-file "$dir/accounts.key" --authorization-mode Node,RBAC --allow-privileged \
        --service-cluster-ip-range 10.96.0.0/16 --advertise-address "${address[$h]}" --cert-dir "$dir/$h/certificates" \
        --kubelet-client-certificate "$dir/admin.crt" --kubelet-client-key "$dir/admin.key" --secure-port 6443
    pod "$h" manager "$IMAGE_MANAGER" /usr/local/bin/kube-controller-manager --kubeconfig "$dir/manager.kubeconfig" \
        "${tls[@]}" --allocate-node-cidrs --cluster-cidr 100.96.0.0/16 --use-service-account-credentials \
        --service-account-private-key-file "$dir/accounts.key" --root-ca-file "$dir/ca.crt"
    pod "$h" scheduler "$IMAGE_SCHEDULER" /usr/local/bin/kube-scheduler --kubeconfig "$dir/scheduler.kubeconfig" "${tls[@]}"
    pod "$h" proxy "$IMAGE_PROXY" /usr/local/bin/kube-proxy --kubeconfig "$dir/proxy.kubeconfig" --cluster-cidr 100.96.0.0/16 \
        --hostname-override "$h" --conntrack-max-per-core 0 --conntrack-tcp-timeout-established 0s \
        --conntrack-tcp-timeout-close-wait 0s
done

# hosts
begin() { # host, script: the first process of namespaces of its own
    nsenter --net="/run/netns/$net-$1" unshare --uts --mount --ipc --pid --fork --kill-child --mount-proc sh -ec "$2" \
        > "$dir/$1/log/host.log" 2>&1 &
    pids+=($!)
}
for h in "${hosts[@]}"; do
    cat > "$dir/$h/containerd.toml" <<CONFIG
version = 2
root = "$dir/$h/containerd"
state = "$dir/$h/run/containerd"
disabled_plugins = ["io.containerd.internal.v1.opt"]
[grpc]
address = "$dir/$h/run/containerd.sock"
[plugins."io.containerd.grpc.v1.cri"]
restrict_oom_score_adj = true
sandbox_image = "$IMAGE_PAUSE"
[plugins."io.containerd.grpc.v1.cri".cni]
bin_dir = "$PLUGINS"
conf_dir = "$dir/$h/cni"
CONFIG
    cat > "$dir/$h/kubelet.yaml" <<CONFIG
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
authentication: {anonymous: {enabled: false}, webhook: {enabled: false}, x509: {clientCAFile: $dir/ca.crt}}
authorization: {mode: AlwaysAllow}
tlsCertFile: $dir/kubelet-$h.crt
tlsPrivateKeyFile: $dir/kubelet-$h.key
containerRuntimeEndpoint: unix://$dir/$h/run/containerd.sock
staticPodPath: $dir/$h/manifests
cgroupDriver: cgroupfs
cgroupsPerQOS: false
enforceNodeAllocatable: []
failSwapOn: false
failCgroupV1: false
volumePluginDir: $dir/$h/plugins
evictionHard: {memory.available: 1Mi, nodefs.available: 0%, nodefs.inodesFree: 0%, imagefs.available: 0%, imagefs.inodesFree: 0%}
CONFIG
    # Images are there already: containerd gets databases of its own, and shares the rest.
    cp --archive --link "$IMAGES" "$dir/$h/containerd"
    find "$dir/$h/containerd" -name '*.db' -exec sh -ec 'for db; do cp "$db" "$db.own"; mv "$db.own" "$db"; done' - {} +
    # A kubelet writes to kernel parameters and to folders of the machine: it finds others in their place.
    begin "$h" "
        hostname '$h'
        mount -t tmpfs tmpfs /var/lib; mkdir /var/lib/kubelet; mount --make-shared /var/lib; mount --bind '$dir/$h/log' /var/log
        for each in vm/overcommit_memory:1 vm/panic_on_oom:0 kernel/panic:10 kernel/panic_on_oops:1 \
                kernel/keys/root_maxkeys:1000000 kernel/keys/root_maxbytes:25000000; do
            [ -e \"/proc/sys/\${each%:*}\" ] || continue
            echo \"\${each#*:}\" > /var/lib/value-\$(basename \"\${each%:*}\")
            mount --bind /var/lib/value-\$(basename \"\${each%:*}\") \"/proc/sys/\${each%:*}\"
        done
        containerd --config '$dir/$h/containerd.toml' > '$dir/$h/log/containerd.log' 2>&1 &
        until [ -S '$dir/$h/run/containerd.sock' ]; do sleep 0.02; done
        '$KUBERNETES/kubelet' --config '$dir/$h/kubelet.yaml' --kubeconfig '$dir/kubelet-$h.kubeconfig' \
            --hostname-override '$h' --node-ip '${address[$h]}' > '$dir/$h/log/kubelet.log' 2>&1 &
        wait"
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

# a network for each node, once the controller manager has given it a range; then three Ready nodes
kubectl() { nsenter --net="/run/netns/$net-a" "$KUBERNETES/kubectl" --kubeconfig "$dir/admin.kubeconfig" --request-timeout 5s "$@" 2>/dev/null; }
ready() {
    local name range status
    while IFS=' ' read -r name range status; do
        if [ -n "$range" ] && [ ! -e "$dir/$name/cni/network.conflist" ]; then
            cat > "$dir/$name/cni/.network" <<CONFIG
{"cniVersion": "0.4.0", "name": "pods", "plugins": [{"type": "bridge", "bridge": "pods", "isGateway": true,
 "ipam": {"type": "host-local", "ranges": [[{"subnet": "$range"}]]}}]}
CONFIG
            mv "$dir/$name/cni/.network" "$dir/$name/cni/network.conflist"
        fi
        if [ "$status" = True ]; then echo "$name"; fi
    done < <(kubectl get nodes \
        -o 'jsonpath={range .items[*]}{.metadata.name} {.spec.podCIDR} {.status.conditions[?(@.type=="Ready")].status}{"\n"}{end}')
}
until [ "$(ready | wc -l)" = 3 ]; do sleep 0.1; done
now ready

# processor time of all processes of the hosts and of their children that ended, in ticks
spaces=" $(for h in "${hosts[@]}"; do stat -Lc %i "/run/netns/$net-$h"; done | tr '\n' ' ')"
for process in /proc/[0-9]*; do
    case "$spaces" in
    *" $(stat -Lc %i "$process/ns/net" 2>/dev/null || echo none) "*) sed 's/.*) //' "$process/stat" 2>/dev/null || true ;;
    esac
done | awk '{ticks += $12 + $13 + $14 + $15} END {print ticks}' > "$dir/ticks"
