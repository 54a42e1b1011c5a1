# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# Real programs whose server is one process, and the differential test, over devices
# Limit: 900
# Table: verbs-software verbs-verbs
# No others: software and rsockets are in programs
port=8500
. "$lab/served.sh"
needed "a siw device in each namespace" in_peer rdma link add siw1 type siw netdev up0

unheard=(env WARPSOCK_REPORT= "${soft[@]:2}") # by software, and not in a report
proved() { clients_said && served_by "$its"; }
netcat_up() {
	serve sh -c "exec nc -l $at $port </dev/null >$got"
	ask sh -c "exec nc -N $at $port <$file" && ends server 10 && same && proved
}
netcat_down() {
	serve sh -c "exec nc -l -N $at $port <$file"
	ask sh -c "exec nc -d $at $port >$got" && ends server 10 && same && proved
}
# Its server ends with octets unread, which to the client is a reset
iperf() {
	serve iperf3 -s -1 -B $at -p $port
	ask iperf3 -c $at -p $port -n 2M "$@" && ends server 10 && reports "$all_verbs" &&
		served_by "$its"
}
http() {
	serve python3 -m http.server --bind $at --directory /tmp/case $port
	fetched && interrupted python3 && clients_said && served_by "$its"
}
# In one process: workers come of a fork
web() {
	nginx_folder $at:$port "master_process off;"
	serve "${nginx[@]}"
	ask curl -sSf -o $got "$(url file)" -o $got.2 "$(url file)" && same && same $got.2 &&
		ask curl -sSf -T $file "$(url up/file)" && same $work/up/file && pieces &&
		ask ab -q -k -n 40 -c 4 "$(url nginx.conf)" >/tmp/case/ab.log &&
		all_answered 40 && stop server && proved
}
# s_client is told of the end and answers it, when nginx may have closed: a reset to it
tls() {
	openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj /CN=warpsock \
		-addext "subjectAltName=IP:$at" -keyout $work/key.pem -out $work/cert.pem
	nginx_folder "$at:$port ssl; ssl_certificate $work/cert.pem;
		ssl_certificate_key $work/key.pem" "master_process off;"
	serve "${nginx[@]}"
	ask curl -sSf --cacert $work/cert.pem -o $got "https://$at:$port/file" && same &&
		ask curl -sSf --cacert $work/cert.pem -T $file "https://$at:$port/up/tls" &&
		same $work/up/tls && clients_said && printf 'GET /nginx.conf HTTP/1.0\r\n\r\n' |
		ask openssl s_client -quiet -verify_return_error -CAfile $work/cert.pem \
			-connect $at:$port | sed '1,/^\r$/d' | cmp - $work/nginx.conf &&
		stop server && reports "$theirs" && served_by "$its"
}
# As its user from the beginning: whoever becomes another one may use no device that it has opened
apache_alone() {
	chown nobody $work
	apache event setpriv --reuid nobody --regid nogroup --clear-groups \
		apache2 -X -c "ThreadsPerChild 8"
	local status=$?
	chown root $work
	return $status
}
# Behind it stands nginx, by software
proxy() {
	local status=0
	nginx_folder $at:$((port + 1)) "master_process off;"
	start nginx in_peer timeout -k 2 100 "${unheard[@]}" "${nginx[@]}"
	await_port nginx $((port + 1))
	cat >$work/haproxy.cfg <<-END
		global
			nbthread 2
		defaults
			timeout connect 20s
			timeout client 40s
			timeout server 40s
		listen web
			mode http
			bind $at:$port
			server one $at:$((port + 1)) pool-purge-delay 50ms
		listen octets
			mode tcp
			bind $at:$((port + 2))
			server one $at:$((port + 1))
	END
	serve haproxy -db -f $work/haproxy.cfg
	ask curl -sSf -o $got "$(url file)" -o $got.2 "$(url nginx.conf)" && same &&
		cmp $work/nginx.conf $got.2 &&
		ask curl -sSf -o $got "http://$at:$((port + 2))/file" && same && clients_said ||
		status=1
	stop server USR1
	stop nginx
	[ $status = 0 ] && served_by "$its"
}
memcache() {
	serve memcached -u root -l $at -p $port -U 0 -t 2
	ask python3 "$lab/memcache.py" $at $port && running server && stop server && proved
}
# By libmemcached's own tools
memcached_tools() {
	local servers=--servers=$at:$port
	serve memcached -u root -l $at -p $port -U 0 -t 2
	ask memccp $servers $file && ask memccat $servers --file=$got ${file##*/} && same &&
		ask memcslap $servers --test=get --concurrency=4 --execute-number=20 \
			--initial-load=50 && ask memcrm $servers ${file##*/} &&
		! ask memccat $servers ${file##*/} &&
		ask memcstat $servers | grep "threads: 2$" && stop server && proved
}
redis() {
	serve redis-server --bind $at --port $port --save "" --protected-mode no \
		--repl-diskless-sync-delay 0
	ask redis-cli -h $at -p $port -x set key <$file &&
		ask redis-cli -h $at -p $port get key | head -c 1000000 | cmp - $file &&
		ask redis-benchmark -h $at -p $port -n 200 -c 4 -t set,get -q &&
		ask redis-benchmark -h $at -p $port -n 2000 -c 4 -P 16 -t set,get -q && clients_said
}
# Whoever only hears: a subscriber, and a monitor
publishes() {
	local cli=("${asks[@]}" redis-cli -h $at -p $port)
	start monitor "${cli[@]}" monitor
	start subscriber "${cli[@]}" subscribe channel
	says monitor OK && says subscriber subscribe &&
		"${cli[@]}" publish channel word | grep -x 1 && says subscriber word &&
		says monitor '"publish" "channel" "word"' &&
		printf 'client kill type %s\n' normal pubsub | "${cli[@]}" | grep -x 1
	local status=$?
	gone monitor 10 && gone subscriber 10 && [ $status = 0 ] && clients_said
}
# Each command is in its log before it is answered; a child of the server writes that anew
logs() {
	local cli=("${asks[@]}" redis-cli -h $at -p $port)
	local redis=(redis-server --bind $at --port $port --save "" --protected-mode no
		--dir $work --appendonly yes --appendfsync always)
	rm -rf $work/appendonlydir
	serve "${redis[@]}"
	"${cli[@]}" -x set key <$file &&
		"${cli[@]}" bgrewriteaof && says server "rewrite terminated with success" &&
		"${cli[@]}" set last word && clients_said && stop server && served_by "$its" ||
		return
	serve "${redis[@]}"
	"${cli[@]}" get key | head -c 1000000 | cmp - $file &&
		"${cli[@]}" get last | grep -x word && stop server && proved
}
# It is a client here, and gets all that there is from a child of the server
replica() {
	local near=(timeout 20 "${unheard[@]}" redis-cli -p $((port + 1)))
	start replica timeout -k 2 100 "${verbs[@]}" redis-server --bind 127.0.0.1 \
		--port $((port + 1)) --save "" --dir $work --replicaof $at $port
	await_port replica $((port + 1))
	printf 'set last word\nwait 1 30000\n' | ask redis-cli -h $at -p $port | grep -x 1 &&
		"${near[@]}" get key | head -c 1000000 | cmp - $file &&
		"${near[@]}" get last | grep -x word
	local status=$?
	stop replica
	stop server
	[ $status = 0 ] && reports '"software": [1-9][0-9]*, "kernel": 0, "verbs": [2-9]' &&
		served_by "$its"
}
# A second signal would halt its end
latency() {
	serve sockperf sr --tcp -i $at -p $port
	ask sockperf pp --tcp -i $at -p $port -t 1 -m 100 &&
		kill -INT "$(pgrep -g "${pid_of[server]}" -x sockperf)" && ends server 10 && proved
}
threads() {
	serve python3 "$stream" serve $at $port 3
	ask python3 "$stream" talk $at $port 3 100000 && ends server 20 && proved
}
asynchronous() {
	serve env SERVE_AT=$at python3 "$programs/py_side.py" echo $port
	ask env SERVE_AT=$at python3 "$programs/py_side.py" talk $port 4 word &&
		stop server && proved
}
java=(env -C $work SERVE_AT=$at java -Xshare:auto -XX:TieredStopAtLevel=1
	-cp "$project/build-vm/java" Http)
java_() {
	serve "${java[@]}" serve $port $((port + 1))
	cp $file $work/file
	ask curl -sSf -o $got "$(url file)" && same &&
		ask "${java[@]}" echo $((port + 1)) file | grep -x "the same" &&
		stop server && proved
}
node_() {
	local node=(env -C $work SERVE_AT=$at node "$programs/http.js")
	cp $file $work/file
	serve "${node[@]}" serve $port
	ask "${node[@]}" fetch $port file | grep "^file $(sha256sum <$file | cut -d ' ' -f 1)$" &&
		stop server && proved
}

both_ends() {
	program "netcat sends" netcat_up
	program "netcat is sent" netcat_down
	program "http.server" http
	program "nginx: files, ranges, uploads, kept connections" web
	program "nginx by TLS, and openssl s_client" tls
	program "apache, by events in one process" apache_alone
	program "haproxy, by HTTP and by octets, before nginx" proxy
	program "memcached" memcache
	program "memcached, by its own tools" memcached_tools
	program "sockperf" latency
	program "iperf3" iperf
	program "iperf3 -R" iperf -R
	program "iperf3 -P 3" iperf -P 3
	port=$((port + 10))
	check "redis, and redis-benchmark" redis
	check "redis: SUBSCRIBE, PUBLISH, MONITOR" publishes
	check "a redis that copies it" replica
	program "redis: a log of all commands" logs
	program "Python's threads" threads
	program "Python's asyncio" asynchronous
	program "Java" java_
	program "Node" node_
}
pair=verbs-software server=("${soft[@]}") its=$all_software
both_ends
pair=verbs-verbs server=("${by_the_device[@]}") its=$all_verbs
both_ends
pair=
in_peer rdma link delete siw1

# The other way round
at=$SIW serves=(timeout -k 2 300) its=$all_verbs theirs=$all_software
asks=(in_peer timeout -k 2 100 env WARPSOCK_REPORT=$report "${soft[@]:2}")
program "software to verbs: nginx" web
program "software to verbs: nginx by TLS, and openssl s_client" tls
program "software to verbs: apache, by events in one process" apache_alone
program "software to verbs: memcached, by its own tools" memcached_tools
port=$((port + 10))
check "software to verbs: redis" redis
check "software to verbs: redis: SUBSCRIBE, PUBLISH, MONITOR" publishes
stop_left
program "software to verbs: Python's asyncio" asynchronous

# The same random programs over TCP and over the device, which connects to itself. Who connects to
# a listener of its own process cannot wait for the device, and begins by software.
both_here='"software": [1-9][0-9]*, "kernel": 0, "verbs": [1-9][0-9]*, "tcp": 0'
random_programs() {
	rm -f $report
	env DIFFERENTIAL_ADDRESS=$SIW timeout -k 2 200 "${verbs[@]}" \
		"$build/tests/differential/differential" "$1" 1 "$2" && reports "$3"
}
check "random programs, one thread" random_programs one 1500 "$both_here"
check "random programs, three threads" random_programs threads 600 "$both_here"
check "random programs, two processes" random_programs two 600 "$all_verbs"
