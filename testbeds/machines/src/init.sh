#!/bin/busybox sh
# The first program of the machine: makes the network and its RoCE device, then runs what the host asks for.
#
# Each word that is an applet of busybox runs as that, whatever PATH says: `ip` is iproute2's only as /usr/bin/ip.
export PATH=/usr/bin:/bin HOME=/tmp
/bin/busybox mkdir -p /proc /sys /dev /run /tmp
# Without /proc/self/exe the shell finds no applet.
/bin/busybox mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t devtmpfs devtmpfs /dev
# For programs that start others.
busybox --install -s /bin

# Words of the kernel's command line: weir.NAME=VALUE.
for word in $(cat /proc/cmdline); do
    case $word in
    weir.name=*) hostname "${word#*=}" ;;
    weir.address=*) address=${word#*=} ;;
    weir.mtu=*) mtu=${word#*=} ;;
    esac
done

while read -r module; do
    insmod "/modules/$module.ko" || failed="$failed insmod $module;"
done </modules/order

for port in /sys/class/virtio-ports/*; do
    [ "$(cat "$port/name")" = weir ] && exec 3<>"/dev/${port##*/}"
done

attempt() {
    "$@" >/run/attempt 2>&1 || failed="$failed $*: $(tr '\n' ' ' </run/attempt);"
}
ulimit -l unlimited
attempt /usr/bin/ip link set lo up
attempt /usr/bin/ip link set eth0 mtu "$mtu"
attempt /usr/bin/ip address add "$address" dev eth0
attempt /usr/bin/ip link set eth0 up
attempt /usr/bin/rdma link add rxe0 type rxe netdev eth0

# Writes a file to the host as one message. A folder is a lock: it can be made once.
say() {
    until mkdir /run/speaking 2>/dev/null; do usleep 1000; done
    cat "$1" >&3
    rmdir /run/speaking
}

# Runs /run/ID.command in a session of its own, and tells how it ended: "done ID STATUS LENGTH LENGTH", then what it wrote.
serve() {
    setsid sh "/run/$1.command" >"/run/$1.out" 2>"/run/$1.err" </dev/null 3>&- &
    echo $! >"/run/$1.pid"
    wait $!
    status=$?
    : >"/run/$1.done"
    for stream in out err; do
        head -c "$limit" "/run/$1.$stream" >"/run/$1.$stream.sent"
    done
    {
        echo "done $1 $status $(stat -c %s "/run/$1.out.sent") $(stat -c %s "/run/$1.err.sent")"
        cat "/run/$1.out.sent" "/run/$1.err.sent"
    } >"/run/$1.reply"
    say "/run/$1.reply"
    rm -f "/run/$1.command" "/run/$1.out" "/run/$1.err" "/run/$1.out.sent" "/run/$1.err.sent" "/run/$1.reply"
}

# What had just been started may not have said its number yet.
end() {
    until [ -s "/run/$1.pid" ]; do usleep 1000; done
    [ -e "/run/$1.done" ] || kill -9 "-$(cat "/run/$1.pid")"
}

echo "${failed:-ready}" >/run/greeting
say /run/greeting
# "run ID LENGTH LIMIT" and the command; "end ID". The kernel restarts the machine when this ends, and QEMU ends then.
while read -r verb id length limit <&3; do
    case $verb in
    run)
        dd bs=1 count="$length" <&3 >"/run/$id.command" 2>/dev/null
        serve "$id" &
        ;;
    end) end "$id" & ;;
    esac
done
