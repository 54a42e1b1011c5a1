# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# What the cases of real programs share: a server in the namespace, and its clients here, over
# siw0. What they carry is $file, and comes as $got; their folder is $work.
#
# $server is what runs the server: software, or the device over there; $serves, where it does so,
# and $asks, what its clients run in.
. "$lab/devices.sh"
served=/tmp/case/served.json # what the server reports
soft=(env WARPSOCK_REPORT=$served "$apps/warpsock" run --all --mode on --)
by_the_device=(env WARPSOCK_PROVIDER=verbs "${soft[@]:1}")
programs=$project/tests/programs
file=/tmp/case/file got=/tmp/case/got work=/tmp/case/work
at=$PEER
mkdir -m 755 $work
head -c 1000000 /dev/urandom >$file
ulimit -l unlimited

serves=(in_peer timeout -k 2 300) asks=(timeout -k 2 100 "${verbs[@]}")
# serve COMMAND...: with $port in it; a report is begun that the server's other users write, too
serve() {
	rm -f $report $got*
	install -m 666 /dev/null $served
	start server "${serves[@]}" "${server[@]}" "$@"
	await_port server $port
}
ask() { "${asks[@]}" "$@"; }
fetched() { ask curl -sSf -o $got "$(url file)" && same; }
# says NAME TEXT: a client that was started does, soon
silent() { ! grep -q "$2" "/tmp/case/$1.log"; }
says() { ceases 10 silent "$@"; }
same() { cmp $file "${1:-$got}"; }
url() { echo "http://$at:$port/$1"; }

# interrupted COMM: SIGINT for this process of the server alone. timeout sends it once more, and
# Python, which ends by the first, has no handler for the second any more
interrupted() {
	kill -s INT $(pgrep -g "${pid_of[server]}" -x "$1") && ceases 3 any_left server
}

# Who starts a server may not be among the checks that were chosen
stop_left() { [ -z "${pid_of[server]:-}" ] || stop server; }

# program NAME FUNCTION: a server, its clients, and what both report; a server that is left ends
program() {
	port=$((port + 10))
	check "$@"
	stop_left
}

all_software=$(all_by software) all_verbs=$(all_by verbs)
theirs=$all_verbs # the clients'
clients_said() { reports "$theirs.*\"errors\": 0"; }
# served_by PATTERN: and so says the server, which has ended
served_by() { cat $served; grep -qE "$1" $served; }

# nginx_folder LISTEN WORDS...: its configuration, $file in its folder, and in $nginx its command
nginx_folder() {
	errors=/tmp/case/nginx-$port.log
	nginx=(nginx -p $work -c $work/nginx.conf -e $errors)
	mkdir -p $work/up
	rm -f $errors
	cp $file $work/file
	cat >$work/nginx.conf <<-END
		daemon off; user root; pid $work/nginx.pid; error_log $errors info;
		${*:2}
		events { worker_connections 64; }
		http { access_log off; client_max_body_size 0; client_body_temp_path $work/a;
			proxy_temp_path $work/b; fastcgi_temp_path $work/c;
			uwsgi_temp_path $work/d; scgi_temp_path $work/e;
			server { listen $1; root $work;
				location /up/ { dav_methods PUT; } } }
	END
}
# Of $file, over one connection
pieces() {
	rm -f $got*
	ask curl -sSf -r 0-999 -o $got.1 "$(url file)" --next -sSf -r 1000-70000 -o $got.2 \
		"$(url file)" --next -sSf -r 70001- -o $got.3 "$(url file)" &&
		cat $got.[123] >$got && same
}
# all_answered N: of ab's requests
all_answered() {
	cat /tmp/case/ab.log
	grep -q "^Complete requests: *$1$" /tmp/case/ab.log &&
		grep -q "^Failed requests: *0$" /tmp/case/ab.log
}

# apache_folder WAY: its configuration, and $file in its folder
apache_folder() {
	cp $file $work/file
	cat >$work/apache.conf <<-END
		ServerRoot /usr/lib/apache2
		LoadModule mpm_$1_module modules/mod_mpm_$1.so
		LoadModule authz_core_module modules/mod_authz_core.so
		Listen $at:$port
		ServerName lab
		User nobody
		Group nogroup
		PidFile $work/apache.pid
		ErrorLog $work/apache.log
		DefaultRuntimeDir $work
		DocumentRoot $work
	END
}
# apache WAY COMMAND...
apache() {
	apache_folder "$1"
	serve "${@:2}" -f $work/apache.conf
	fetched && ask ab -q -k -n 40 -c 4 "$(url apache.conf)" >/tmp/case/ab.log &&
		all_answered 40 && stop server && clients_said && served_by "$its"
}
