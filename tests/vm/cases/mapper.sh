# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# A device's listener stands at another TCP port, which rdma-core's iwpmd tells: software finds it
# Limit: 200
port=7700
ulimit -l unlimited # siw counts what root has pinned, too
ports='
import socket, struct, sys

IWCM, MAPINFO, NO_PORT_MAP = 2, 6, 1  # rdma_netlink.h


def attribute(number, octets):
    return struct.pack("=HH", 4 + len(octets), number) + octets


def address(text, port):
    return struct.pack("=H", socket.AF_INET) + struct.pack(">H", port) + \
        socket.inet_aton(text) + bytes(120)


pid, addr, named, stands = int(sys.argv[1]), sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
body = attribute(1, address(addr, named)) + attribute(2, address(addr, stands))
body += attribute(3, struct.pack("=I", NO_PORT_MAP))
with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 20) as s:
    s.bind((0, 0))
    head = struct.pack("=IHHII", 16 + len(body), IWCM << 10 | MAPINFO, 1, 1, s.getsockname()[0])
    s.sendto(head + body, (pid, 0))
'

# mapped NAMED STANDS: from here on iwpmd says so, as the driver of a device would have told it
mapped() { python3 -c "$ports" "$mapper" $SIW $1 $2 && nap 0.3; }

# met SERVER STANDS CLIENT NAMED: a server at one port, a client that names one
met() {
	local run status=0 program=$project/build-vm/script_sockets at=$SIW
	[ $1 != software ] || at=$PEER
	end_of $1 "$program" listen $at $2 get 5000 put 5000 eof close
	start server "${run[@]}"
	await_port server $2
	end_of $3 "$program" connect $at $4 put 5000 get 5000 close
	"${run[@]}" || status=$?
	[ $status = "${status_client:-0}" ] || return
	if [ $status = 0 ]; then ends server 20; else stop server; fi
}

# pinged STANDS NAMED OPTION...: rping on siw at one port, warp-rping that names another one
pinged() {
	local status=0
	start server rping -s -a $SIW -p $1
	await_port server $1
	in_peer timeout -k 2 60 "$apps/examples/warp-rping" -c -a $SIW -p $2 -C 3 "${@:3}" ||
		status=$?
	gone server 2 || stop server
	return $status
}

# iw_cm asks it before it has noted for whom (iwpm_msg.c, iwpm_register_pid): an answer at once is
# an oops. Idle, it runs when iw_cm has gone to sleep.
start mapper chrt --idle 0 iwpmd -s
mapper=${pid_of[mapper]}
for ((i = 0; i < 100; i++)); do
	! grep -q ":0F5F " /proc/net/udp || break
	nap 0.1
done
mapped 7701 7702
status_client=1 check "nobody is asked, and at that port nobody is" \
	met librspreload 7702 software 7701
export WARPSOCK_PORT_MAPPER=3s
capture mapped
check "the port mapper says where the listener stands" met librspreload 7702 software 7701
check "a listener that stands where it says" met librspreload 7703 software 7703
check "a host without a port mapper" met software 7704 software 7704
mapped 7706 7707
mode=(--use "auto client * $SIW:*")
check "in mode auto" met librspreload 7707 software 7706
mode=(--all --mode on)
mapped 7708 7709
check "of queue pairs" pinged 7709 7708 --port-mapper
end_capture mapped
stop mapper
check "the port mapper is gone" met librspreload 7705 software 7705
