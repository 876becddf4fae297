#!/usr/bin/env bash
# What a person who knows how would type to get the same: three hosts in namespaces on a bridge, disks on loop devices,
# certificates, a DNS server, and a three-member etcd with TLS. Up to quorum; then one host dies, and its member is
# brought back on a new one, at another address. Everything is taken away at the end; what happened when is in files.
# Needs ETCD, ETCDCTL, KNOTD (programs), KNOT_LIBRARIES, and an empty folder as its argument.
set -euo pipefail
dir=$1
net=byhand$$
members=(a b c)
now() { date +%s.%N > "$dir/$1"; }
names() { for m in "${members[@]}"; do printf '%s' "etcd-$m=https://etcd-$m.internal.byhand:2380,"; done | sed 's/,$//'; }

take_away() {
    set +e
    kill -9 "${pids[@]}" 2>/dev/null
    wait 2>/dev/null
    for m in "${members[@]}"; do
        umount "$dir/mnt-$m" 2>/dev/null
        [ -n "${loop[$m]:-}" ] && losetup -d "${loop[$m]}"
    done
    for h in a b c d; do ip netns del "$net-$h" 2>/dev/null; done
    ip netns del "$net" 2>/dev/null
}
declare -A loop
pids=()
trap take_away EXIT

# network
ip netns add "$net"
ip -n "$net" link set lo up
ip -n "$net" link add br0 type bridge
ip -n "$net" addr add 10.78.0.1/24 dev br0
ip -n "$net" link set br0 up
host() { # its name, the last part of its address
    ip netns add "$net-$1"
    ip -n "$net" link add "port-$1" type veth peer name eth0 netns "$net-$1"
    ip -n "$net" link set "port-$1" master br0 up
    ip -n "$net-$1" link set lo up
    ip -n "$net-$1" addr add "10.78.0.$2/24" dev eth0
    ip -n "$net-$1" link set eth0 up
}
host a 11
host b 12
host c 13

# disks
for m in "${members[@]}"; do
    truncate -s 1G "$dir/$m.img"
    loop[$m]=$(losetup -f --show "$dir/$m.img")
    mkfs.ext4 -q -F -m0 -E lazy_itable_init=1,lazy_journal_init=1 "${loop[$m]}"
    mkdir "$dir/mnt-$m"
    mount "${loop[$m]}" "$dir/mnt-$m"
done

# certificates
for ca in peer client; do
    openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 365 -subj "/CN=$ca-ca" \
        -keyout "$dir/$ca-ca.key" -out "$dir/$ca-ca.crt" 2>/dev/null
done
sign() { # name, authority, subject alternative names
    openssl req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj "/CN=$1" \
        -keyout "$dir/$1.key" -out "$dir/$1.csr" 2>/dev/null
    openssl x509 -req -in "$dir/$1.csr" -CA "$dir/$2-ca.crt" -CAkey "$dir/$2-ca.key" -CAcreateserial -days 365 \
        -extfile <(printf 'subjectAltName=%s\nextendedKeyUsage=serverAuth,clientAuth' "$3") -out "$dir/$1.crt" 2>/dev/null
}
for m in "${members[@]}"; do
    sign "$m-peer" peer "DNS:etcd-$m.internal.byhand,DNS:localhost,IP:127.0.0.1"
    sign "$m-server" client "DNS:etcd-$m.internal.byhand,DNS:localhost,IP:127.0.0.1"
done
sign user client "DNS:localhost"

# names
zone() { # serial, address of c
    cat > "$dir/zone" <<ZONE
\$TTL 5
@ IN SOA ns.byhand. root.byhand. $1 60 60 60 5
@ IN NS ns.byhand.
ns IN A 10.78.0.1
etcd-a.internal IN A 10.78.0.11
etcd-b.internal IN A 10.78.0.12
etcd-c.internal IN A $2
ZONE
}
zone 1 10.78.0.13
cat > "$dir/knot.conf" <<KNOT
server:
    rundir: "$dir"
    listen: [ 10.78.0.1@53 ]
database:
    storage: "$dir"
zone:
  - domain: byhand
    storage: "$dir"
    file: zone
KNOT
# `ip netns exec` copies all mounts: a disk that a copy still holds could not be taken away
without() { for m in "${members[@]}"; do [ "$m" = "$1" ] || printf "umount '%s' && " "$dir/mnt-$m"; done; }
LD_LIBRARY_PATH=$KNOT_LIBRARIES ip netns exec "$net" sh -c "$(without '') exec '$KNOTD' -c '$dir/knot.conf'" \
    >/dev/null 2>&1 &
dns=$!
pids+=("$dns")
echo "nameserver 10.78.0.1" > "$dir/resolv.conf"

# etcd
etcd() { # member, host
    local m=$1
    ip netns exec "$net-$2" unshare --mount sh -c "$(without "$m") mount --bind '$dir/resolv.conf' /etc/resolv.conf && exec '$ETCD' \
        --name etcd-$m --data-dir '$dir/mnt-$m/data' --logger zap --log-outputs stderr --pre-vote \
        --listen-peer-urls https://0.0.0.0:2380 --listen-client-urls https://0.0.0.0:4001 \
        --initial-advertise-peer-urls https://etcd-$m.internal.byhand:2380 \
        --advertise-client-urls https://etcd-$m.internal.byhand:4001 \
        --initial-cluster '$(names)' --initial-cluster-state new --initial-cluster-token byhand-$$ \
        --cert-file '$dir/$m-server.crt' --key-file '$dir/$m-server.key' --trusted-ca-file '$dir/client-ca.crt' \
        --client-cert-auth --peer-cert-file '$dir/$m-peer.crt' --peer-key-file '$dir/$m-peer.key' \
        --peer-trusted-ca-file '$dir/peer-ca.crt' --peer-client-cert-auth" > "$dir/etcd-$m.log" 2>&1 &
    etcd[$m]=$!
    pids+=($!)
}
declare -A etcd
for m in "${members[@]}"; do etcd "$m" "$m"; done

# quorum: a write that is read back through each member
export ETCDCTL_API=3 ETCDCTL_CACERT=$dir/client-ca.crt ETCDCTL_CERT=$dir/user.crt ETCDCTL_KEY=$dir/user.key
healthy() { # on this host
    until ip netns exec "$net-$1" "$ETCDCTL" --endpoints https://127.0.0.1:4001 --command-timeout 200ms \
        --dial-timeout 100ms get ready >/dev/null 2>&1; do
        sleep 0.02
    done
}
for m in "${members[@]}"; do healthy "$m"; done
now quorum

# the host of c dies; d is ready to take its disk over
sleep 1
host d 14
now killed
kill -9 "${etcd[c]}"
wait "${etcd[c]}" 2>/dev/null || true
umount "$dir/mnt-c"
losetup -d "${loop[c]}"
now attachable
loop[c]=$(losetup -f --show "$dir/c.img")
fsck.ext4 -p "${loop[c]}" >/dev/null
mount "${loop[c]}" "$dir/mnt-c"
zone 2 10.78.0.14
kill -HUP "$dns"
etcd c d
healthy d
now healthy
for m in a b; do
    until [ -n "$(ip netns exec "$net-$m" ss -Htn state established dst 10.78.0.14 dport = 2380)" ]; do
        sleep 0.02
    done
done
now connected
