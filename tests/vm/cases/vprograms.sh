# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# Real programs and the differential test over devices: siw0 here, siw1 in the namespace
# Limit: 900
port=8500
. "$lab/devices.sh"
ulimit -l unlimited
file=/tmp/case/file got=/tmp/case/got
head -c 3000000 /dev/urandom >$file
check "a siw device in each namespace" in_peer rdma link add siw1 type siw netdev up0
under=(timeout -k 2 80 "${verbs[@]}")

# serve COMMAND...: with $port in it; then ask() runs a client, and each of its ends is a device's
serve() {
	rm -f $report $got*
	start server env WARPSOCK_REPORT= "${under[@]}" "$@"
	await_port server $port
}
ask() { in_peer "${under[@]}" "$@"; }
all='"software": 0, "kernel": 0, "verbs": [1-9][0-9]*, "tcp": 0'
by_devices() { reports "$all.*\"errors\": 0"; }

netcat_up() {
	serve sh -c "exec nc -l $SIW $port </dev/null >$got"
	ask sh -c "exec nc -N $SIW $port <$file" && ends server 10 && cmp $file $got && by_devices
}
netcat_down() {
	serve sh -c "exec nc -l -N $SIW $port <$file"
	ask sh -c "exec nc -d $SIW $port >$got" && ends server 10 && cmp $file $got && by_devices
}
# Its server ends with octets unread, which to the client is a reset
iperf() {
	serve iperf3 -s -1 -B $SIW -p $port
	ask iperf3 -c $SIW -p $port -n 2M "$@" && ends server 10 && reports "$all"
}
http() {
	serve python3 -m http.server --bind $SIW --directory /tmp/case $port
	ask curl -sS -o $got http://$SIW:$port/file && cmp $file $got && stop server && by_devices
}
# In one process: workers come of a fork, and would be software's
web() {
	mkdir -p /tmp/case/nginx
	cat >/tmp/case/nginx.conf <<-END
		daemon off; master_process off; user root; pid /tmp/case/nginx/pid;
		error_log /tmp/case/nginx.log;
		events { worker_connections 64; }
		http { access_log off; client_body_temp_path /tmp/case/nginx/a;
			proxy_temp_path /tmp/case/nginx/b; fastcgi_temp_path /tmp/case/nginx/c;
			uwsgi_temp_path /tmp/case/nginx/d; scgi_temp_path /tmp/case/nginx/e;
			server { listen $SIW:$port; root /tmp/case; } }
	END
	serve nginx -p /tmp/case/nginx -c /tmp/case/nginx.conf
	ask curl -sS -o $got http://$SIW:$port/file -o $got.2 http://$SIW:$port/file &&
		cmp $file $got && cmp $file $got.2 && stop server && by_devices
}
memcache() {
	serve memcached -u root -l $SIW -p $port -U 0 -t 2
	ask python3 "$lab/memcache.py" $SIW $port && running server && stop server && by_devices
}
redis() {
	serve redis-server --bind $SIW --port $port --save "" --protected-mode no
	ask redis-cli -h $SIW -p $port -x set key <$file &&
		ask redis-cli -h $SIW -p $port get key >$got &&
		[ "$(head -c 3000000 $got | sha256sum)" = "$(sha256sum <$file)" ] && by_devices
}
redis_bench() {
	ask redis-benchmark -h $SIW -p $port -n 400 -c 4 -t set,get -q |
		tr '\r' '\n' | tail -n 2 && stop server && by_devices
}
latency() {
	serve sockperf sr --tcp -i $SIW -p $port
	ask sockperf pp --tcp -i $SIW -p $port -t 2 -m 100 && stop server INT && by_devices
}

here=("${verbs[@]}") there=("${verbs[@]}") serves=here
for program in netcat_up netcat_down http web memcache latency; do
	port=$((port + 1))
	check "verbs to verbs: $program" $program
done
for how in "" -R "-P 3"; do
	port=$((port + 1))
	# shellcheck disable=SC2086 # words
	check "verbs to verbs: iperf3 $how" iperf $how
done
port=$((port + 1))
check "verbs to verbs: redis, 3 MB" redis
check "verbs to verbs: redis-benchmark, 4 connections" redis_bench
check "verbs to verbs: Python's threads" echoes 3 100000
check "Python's threads: each was a device's" by_devices

# The same random programs over TCP and over the device, which connects to itself
random_programs() {
	env DIFFERENTIAL_ADDRESS=$SIW timeout -k 2 200 "${verbs[@]}" \
		"$project/build/tests/differential/differential" "$1" 1 "$2"
}
check "random programs, one thread" random_programs one 1500
check "random programs, three threads" random_programs threads 600
check "random programs, two processes" random_programs two 600
in_peer rdma link delete siw1
