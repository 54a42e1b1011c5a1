# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What benchmarks there are, with a line about each and the programs that it needs."""
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass

import beside
import carriers
import connections
import delayed
import message
import programs
import segments
from session import TOP


@dataclass(frozen=True)
class Bench:
    text: str
    go: callable
    needs: tuple = ()  # pairs of program and Debian package


BENCHES = {
    "latency": Bench("a message there and back, by size: time, distribution, CPU",
                     message.latency),
    "bandwidth": Bench("messages one way, by size: bandwidth and CPU", message.bandwidth),
    "segments": Bench("messages one way over a network of 1500 octets a frame",
                      segments.segments, (("ip", "iproute2"),)),
    "native": Bench("RDMA Writes and Reads of the native API against TCP", message.native),
    "carriers": Bench("the native API by system calls and by io_uring: 1, 64 and 1,000 connections",
                      carriers.carriers),
    "steady": Bench("CPU at 1,000 messages a second, one way and with answers", message.steady),
    "sockperf": Bench("sockperf's ping-pong", programs.sockperf, (("sockperf", "sockperf"),)),
    "iperf3": Bench("iperf3, also -R and -P 4", programs.iperf3, (("iperf3", "iperf3"),)),
    "redis": Bench("redis-benchmark: 1, 30 and 50 clients, 64 B and 4 KiB, pipelining",
                   programs.redis, (("redis-server", "redis-server"),
                                    ("redis-benchmark", "redis-tools"))),
    "memcached": Bench("memcached with memaslap", programs.memcached,
                       (("memcached", "memcached"), ("memcaslap", "libmemcached-tools"))),
    "nginx": Bench("nginx with wrk: 1 KiB, 64 KiB, 1 MiB, sendfile on and off", programs.nginx,
                   (("nginx", "nginx"), ("wrk", "wrk"))),
    "ab": Bench("nginx with ab, a connection for each request", programs.ab,
                (("nginx", "nginx"), ("ab", "apache2-utils"))),
    "postgres": Bench("PostgreSQL with pgbench -S: 1 and 8 clients", programs.postgres,
                      ((str(programs.POSTGRES / "postgres"), "postgresql"),
                       ("pgbench", "postgresql"))),
    "connections": Bench("connections a second, beside none and beside 6,000 open ones",
                         connections.connections),
    "memory": Bench("memory and descriptors of an idle connection at each end",
                    connections.idle_memory),
    "idle": Bench("CPU of 1,000 idle connections", connections.idle_cpu),
    "third": Bench("a third program beside two that ping-pong: its share, its wake-ups",
                   beside.third),
    "passthrough": Bench("calls on descriptors that are no sockets", beside.passthrough),
    "instructions": Bench("instructions of a write() and a read() of 64 B, by callgrind",
                          beside.instructions, (("valgrind", "valgrind"),)),
    "delayed": Bench("messages, connections and redis over a network that is far away",
                     delayed.delayed, (("ip", "iproute2"), ("redis-server", "redis-server"),
                                       ("redis-benchmark", "redis-tools"))),
}
# With options and a table of their own
ELSEWHERE = {
    "active": (("bench/active/run.py",), "Active RDMA against Reads and a server in C"),
    "am": (("bench/am/run.py", "{build}"), "Active Messages against bare UDP"),
    "arfs": (("bench/arfs/run.py",), "a file system by Active RDMA, in four ways"),
    "bpf": (("bench/bpf/run.py",), "the eBPF engine and queries against native C"),
}
TABLES = {"targets": "the figures that the project aims at, each beside its target",
          **{name: f"{text}, with options and a table of its own"
             for name, (_, text) in ELSEWHERE.items()}}


def missing(bench):
    return [f"{program} (Debian: {package})" for program, package in bench.needs
            if not shutil.which(program)]


def packages(names):
    """The Debian packages of the programs that were run, with their versions."""
    wanted = sorted({package for name in names for _, package in BENCHES[name].needs}
                    | {"ucx-utils", "libfabric-bin"})
    try:
        done = subprocess.run(["dpkg-query", "-W", "-f", "${Package} ${Version}, ", *wanted],
                              text=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    except OSError:
        return ""
    return done.stdout.rstrip(", ")


def run(session, name):
    bench = BENCHES[name]
    session.bench = name
    lacking = missing(bench)
    if lacking:
        session.skip("all of it", f"no {', no '.join(lacking)}")
        return
    with session.open():
        bench.go(session)


def elsewhere(words):
    """Becomes the script of one that has a table of its own."""
    script, *args = (word.format(build=TOP / "build") for word in ELSEWHERE[words[0]][0])
    os.execv(sys.executable, [sys.executable, str(TOP / script), *args, *words[1:]])
