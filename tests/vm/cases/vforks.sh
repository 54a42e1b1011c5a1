# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# Real servers of many processes, by software, and their clients over a device; what forks over one
# Limit: 900
# Table: verbs-software
# No others: what a device has belongs to one process: only the clients can be over one
port=9000
. "$lab/served.sh"
pair=verbs-software server=("${soft[@]}") its=$all_software

web() {
	nginx_folder $at:$port "worker_processes 2;"
	serve "${nginx[@]}"
	ask curl -sSf -o $got "$(url file)" -o $got.2 "$(url file)" && same && same $got.2 &&
		ask curl -sSf -T $file "$(url up/file)" && same $work/up/file && pieces
}
web_alone() { web && stop server QUIT && clients_said && served_by "$its"; }
# ab leaves a connection that it has begun when it has all the answers
reload() {
	ask ab -q -n 60 -c 3 "$(url nginx.conf)" >/tmp/case/ab.log &
	local ab=$!
	nap 1
	kill -HUP "$(cat $work/nginx.pid)"
	wait $ab
	all_answered 60 && fetched && stop server QUIT && reports "$theirs" &&
		served_by "$its" && [ "$(grep -c "start worker process " $errors)" = 4 ]
}

by_events() {
	apache event apache2 -D FOREGROUND -c "StartServers 2" -c "ThreadsPerChild 8" \
		-c "MinSpareThreads 4"
}

postgres=/usr/lib/postgresql/15/bin
# It runs as no root
postgres_serves() {
	rm -rf $work/data
	tar -C $work -xf "$project/build-vm/postgres.tar"
	chown -R postgres $work/data
	serve setpriv --reuid postgres --regid postgres --clear-groups $postgres/postgres \
		-D $work/data -c listen_addresses=$at -p $port -k $work/data -c fsync=off
}
sql() { ask $postgres/psql -X -A -t -h $at -p $port -U postgres -v ON_ERROR_STOP=1 "$@"; }
copied() {
	seq 1 2000 | sed 's/$/\ttext &/' >$work/rows
	sql -c 'CREATE TABLE t (n int, s text)' -c "\\copy t from '$work/rows'" \
		-c "\\copy (table t order by n) to '$work/back'" &&
		cmp $work/rows $work/back &&
		sql -c 'LISTEN c' -c "NOTIFY c, 'word'" |
		grep 'notification "c" with payload "word"'
}
postgres() { postgres_serves && copied; }
# In the table that it has by now: pgbench's own take longer to make than all of this
transactions() {
	cat >$work/transaction <<-END
		\set n random(1, 2000)
		BEGIN;
		UPDATE t SET s = 'changed' WHERE n = :n;
		SELECT s FROM t WHERE n = :n;
		END;
	END
	ask $postgres/pgbench -n -f $work/transaction -c 4 -j 2 -t 5 -h $at -p $port \
		-U postgres postgres | grep "actually processed: 20/20$" &&
		sql -c "SELECT count(*) > 0 FROM t WHERE s = 'changed'" | grep -x t &&
		stop server INT && clients_said && served_by "$its"
}

# bash would read the files of root's home, which are the host's, for a shell of SHLVL 1
ssh_folder() {
	local name
	mkdir -p /run/sshd $work/ssh
	for name in host user; do
		ssh-keygen -q -t ed25519 -N '' -f $work/ssh/$name
	done
	echo "[$at]:$port $(cat $work/ssh/host.pub)" >$work/ssh/known
	cat >$work/ssh/sshd_config <<-END
		ListenAddress $at:$port
		HostKey $work/ssh/host
		AuthorizedKeysFile $work/ssh/user.pub
		PidFile none
		StrictModes no
		SetEnv SHLVL=2
		Subsystem sftp /usr/lib/openssh/sftp-server
	END
	cat >$work/ssh/config <<-END
		Host *
			Port $port
			IdentityFile $work/ssh/user
			UserKnownHostsFile $work/ssh/known
			KexAlgorithms curve25519-sha256
			BatchMode yes
			LogLevel ERROR
	END
}
login() {
	local status=0
	ssh_folder
	serve /usr/sbin/sshd -D -e -f $work/ssh/sshd_config
	printf 'echo word\nid -un\nexit 7\n' | ask ssh -F $work/ssh/config $at "sh -s" >$got ||
		status=$?
	cat $got
	[ $status = 7 ] && [ "$(cat $got)" = word$'\n'root ]
}
copies() {
	ask scp -q -F $work/ssh/config $file $at:$work/ssh/up && same $work/ssh/up &&
		ask scp -q -F $work/ssh/config $at:$work/ssh/up $got && same &&
		echo "get $work/ssh/up $got.2" | ask sftp -q -F $work/ssh/config -b - $at &&
		same $got.2 && stop server &&
		clients_said && served_by "$its"
}

# echoed: what is sent to cat comes back
echoed() { ask socat -t 20 - TCP:$at:$port <$file >$got && same; }
echoes_by() {
	serve "$@"
	echoed && stop server && clients_said && served_by "$its"
}
relay() { echoes_by socat TCP-LISTEN:$port,bind=$at,reuseaddr,fork EXEC:cat; }
inetd() {
	echo "$at:$port stream tcp nowait root /bin/cat cat" >$work/inetd.conf
	echoes_by /usr/sbin/inetd -d $work/inetd.conf
}
python() {
	serve env SERVE_AT=$at python3 "$programs/py_pass.py" "$1" $port
	echoed && clients_said && stop server && served_by "$its"
}

# The connection of a file is accepted too late for DDP (docs/programs.md). In their chroots its
# processes write no report.
ftp() {
	local tcp=(--use "tcp * * *:$((port + 1))" --)
	local server=("${soft[@]::${#soft[@]}-1}" "${tcp[@]}")
	local asks=("${asks[@]::${#asks[@]}-1}" "${tcp[@]}")
	install -d $work/empty $work/root
	install -d -o ftp $work/root/up
	cp $file $work/root/file
	cat >$work/vsftpd.conf <<-END
		listen=YES
		listen_address=$at
		listen_port=$port
		background=NO
		anonymous_enable=YES
		anon_root=$work/root
		anon_upload_enable=YES
		write_enable=YES
		no_anon_password=YES
		pasv_min_port=$((port + 1))
		pasv_max_port=$((port + 1))
		secure_chroot_dir=$work/empty
		xferlog_enable=NO
	END
	serve vsftpd $work/vsftpd.conf
	ask curl -sSf -o $got ftp://$at:$port/file && same &&
		ask curl -sSf -T $file ftp://$at:$port/up/file && same $work/root/up/file &&
		reports '"software": 0, "kernel": 0, "verbs": 2, "tcp": 2.*"RULE_TCP": 2'
}

folder_up() {
	mkdir $work/there $work/here
	cp $file $work/here/one
	head -c 100000 $file >$work/here/two
	cat >$work/rsync.conf <<-END
		use chroot = no
		[m]
		path = $work/there
		read only = no
		uid = root
		gid = root
	END
	serve rsync --daemon --no-detach --address $at --port $port --config $work/rsync.conf
	ask rsync -a $work/here/ rsync://$at:$port/m/ && diff -r $work/here $work/there &&
		clients_said
}
# The route leads over the device, and a rule leaves such programs to software
by_rule() {
	timeout -k 2 60 env -u WARPSOCK_PROVIDER WARPSOCK_REPORT=$report "$apps/warpsock" run \
		--all --mode on --use "ddp client $1 *:* provider soft" -- "$@"
}
folder_down() {
	by_rule rsync -a rsync://$at:$port/m/ $work/copy/ && diff -r $work/there $work/copy &&
		stop server && reports "$all_software" && served_by "$its"
}
repository() {
	export HOME=/tmp/case
	git config --global user.name w
	git config --global user.email w@w
	git init -q -b main $work/git
	cp $file $work/git
	git -C $work/git add file
	git -C $work/git commit -q -m one
	git clone -q --bare $work/git $work/served/one.git
	git -C $work/served/one.git config daemon.receivepack true
	serve git daemon --listen=$at --port=$port --reuseaddr --export-all \
		--base-path=$work/served $work/served
	ask git clone -q git://$at:$port/one.git $work/clone && same $work/clone/file &&
		git -C $work/clone commit -q --allow-empty -m two && clients_said
}
pushed() {
	by_rule git -C $work/clone push -q git://$at:$port/one.git main &&
		[ "$(git -C $work/clone rev-parse HEAD)" = \
			"$(git -C $work/served/one.git rev-parse main)" ] &&
		stop server && reports "$all_software" && served_by "$its"
}
# Who needs its connection in another process, over a device
refused() {
	local said=$1 status=0
	shift
	timeout -k 2 60 "${verbs[@]}" "$@" >/tmp/case/refused.log 2>&1 || status=$?
	cat /tmp/case/refused.log
	rm $report
	[ $status != 0 ] && [ $status != 124 ] && grep "$said" /tmp/case/refused.log
}

port=9000
program "socat: a process for each connection" relay
program "inetd" inetd
program "Python: a process for each connection" python fork
program "Python: workers get connections" python pass
program "Python: workers that were executed get them" python spawn
port=9100
check "nginx: two workers, files, ranges, uploads" web
check "nginx: a reload under load" reload
program "apache: processes and threads, by events" by_events
program "apache: a process for each connection" apache prefork apache2 -D FOREGROUND
port=9130
check "PostgreSQL: COPY in and out, NOTIFY" postgres
check "PostgreSQL: pgbench" transactions
port=9140
check "sshd: a shell, and its status" login
check "sshd: scp there and back, and sftp" copies
program "vsftpd: a file there and back" ftp
port=9160
check "rsync daemon: a folder up" folder_up
pair=
check "rsync over a device: its child is refused, and it ends" \
	refused "Invalid cross-device link" rsync -a rsync://$at:$port/m/ $work/none/
check "rsync by software: a folder down" folder_down
pair=verbs-software
port=9170
check "git daemon: clone" repository
pair=
check "git push over a device: pack-objects is refused" refused "Operation not supported" \
	git -C $work/clone push -q git://$at:$port/one.git main
check "git push by software" pushed

# Servers here, to which the device is named, and clients by software
at=$SIW serves=(timeout -k 2 300)
asks=(in_peer timeout -k 2 100 env WARPSOCK_REPORT=$report "${soft[@]:2}")
theirs=$all_software server=("${by_the_device[@]}") its="$all_software.*\"FORKED\": [1-9]"
port=9200
check "forks before it accepts, software serves: nginx" web
check "forks before it accepts, software serves: nginx, a reload" reload
program "forks before it accepts, software serves: apache, by events" by_events
port=9220
check "forks before it accepts, software serves: PostgreSQL" postgres
check "forks before it accepts, software serves: pgbench" transactions

# first_ends SERVER...: who forks for what a device's listener gave loses that one, soon, and goes
# on by software
first_ends() {
	local status=0
	serve "$@"
	ask timeout 20 socat -t 5 - TCP:$at:$port <$file >$got || status=$?
	[ $status != 124 ] && ! cmp -s $file $got && echoed && rm $report && echoed &&
		stop server && clients_said && served_by \
		'"software": 2, "kernel": 0, "verbs": 1, "tcp": 0.*"FORKED": 1'
}
forking() { first_ends socat TCP-LISTEN:$port,bind=$at,reuseaddr,fork EXEC:cat; }
program "forks for what it accepts: the first ends, software serves then" forking

# Over RoCE, where nobody has named a provider to the server: it has both listeners
rxe_begins >/tmp/case/rxe.log 2>&1
asks=(timeout -k 2 100 "${verbs[@]}")
server=(env -u WARPSOCK_PROVIDER "${soft[@]:1}")
theirs="$all_software.*\"PROVIDER_UNAVAILABLE\": [1-9]"
program "beside RoCE: nginx, by software" web_alone
# Who accepts for a child or another process: none is lost, the first comes again by TCP
its="$all_software.*\"FORKED\": 2"
program "beside RoCE: socat: a process for each connection" relay
program "beside RoCE: inetd" inetd
program "beside RoCE: Python: a process for each connection" python fork
program "beside RoCE: Python: workers get connections unread" python unread
rm -rf $work/ssh $work/there $work/here
program "beside RoCE: sshd: a shell, and its status" login
program "beside RoCE: rsync daemon: a folder up" folder_up
its=$all_software server=("${soft[@]}")
program "beside RoCE, told to use soft: inetd" inetd
rdma link delete rxe0
