#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Unmodified programs over DDP and over plain TCP, in turns: medians and their ratio.

    programs.py [--rounds N] [--only WORD] [WARPSOCK]

Both ends of a run are under the launcher, or neither is. Of a latency lower is better, of all
else higher. A run over DDP counts only when its report names no connection on TCP.
"""
import argparse
import csv
import json
import os
import re
import statistics
import sys
from dataclasses import dataclass
from pathlib import Path

TOP = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(TOP / "tests/programs"))

from play import Stage, ddp_problems, free_port, listens, until  # noqa: E402

NGINX = """
daemon off; worker_processes 1; pid {dir}/nginx.pid; error_log {dir}/error.log; {user}
events {{ worker_connections 512; }}
http {{
	access_log off; sendfile on; keepalive_requests 100000000; client_body_temp_path {dir}/body;
	proxy_temp_path {dir}/proxy; fastcgi_temp_path {dir}/fastcgi; uwsgi_temp_path {dir}/uwsgi;
	scgi_temp_path {dir}/scgi; server {{ listen 127.0.0.1:{port}; root {dir}; }}
}}
"""
SIZES = {"page": 1024, "middle": 65536, "large": 4 << 20}


@dataclass
class Measure:
    name: str
    server: str
    client: tuple  # {port} is the server's
    read: callable  # what the client printed -> a number
    unit: str


def redis_rate(word):
    def read(text):
        rows = list(csv.reader(text.splitlines()))
        return float(next(row[1] for row in rows if row[0] == word)) / 1000
    return read


def iperf_rate(text):
    return json.loads(text)["end"]["sum_received"]["bits_per_second"] / 1e9


def number(pattern, scale=1):
    return lambda text: float(re.search(pattern, text)[1]) / scale


def redis(name, word, *args):
    return Measure(name, "redis", ("redis-benchmark", "-p", "{port}", "--csv", "-t", word.lower(),
                                   *args), redis_rate(word), "k/s")


def wrk(name, clients, file):
    return Measure(name, "nginx", ("wrk", "-t", "1", "-c", str(clients), "-d", "2s",
                                   f"http://127.0.0.1:{{port}}/{file}"),
                   number(r"Requests/sec: *([\d.]+)", 1000), "k/s")


def iperf(name, *args):
    return Measure(name, "iperf3", ("iperf3", "-c", "127.0.0.1", "-p", "{port}", "-J", "-t", "2",
                                    *args), iperf_rate, "Gb/s")


MEASURES = [
    redis("redis GET, 50 clients", "GET", "-c", "50", "-n", "60000"),
    redis("redis SET, 50 clients", "SET", "-c", "50", "-n", "60000"),
    redis("redis GET, 50 clients, pipeline 16", "GET", "-c", "50", "-n", "400000", "-P", "16"),
    redis("redis SET of 4 KiB, 50 clients", "SET", "-c", "50", "-n", "60000", "-d", "4096"),
    redis("redis GET, 1 client", "GET", "-c", "1", "-n", "15000"),
    wrk("nginx 1 KiB, 50 clients", 50, "page"),
    wrk("nginx 64 KiB, 50 clients", 50, "middle"),
    wrk("nginx 4 MiB, 4 clients", 4, "large"),
    iperf("iperf3"),
    iperf("iperf3 -R", "-R"),
    iperf("iperf3 -P 4", "-P", "4"),
    Measure("sockperf ping-pong 64", "sockperf",
            ("sockperf", "ping-pong", "--tcp", "-i", "127.0.0.1", "-p", "{port}", "-t", "2", "-m",
             "64"), number(r"Latency is ([\d.]+)"), "us"),
]


def server_command(stage, kind, port):
    if kind == "redis":
        return ["redis-server", "--port", str(port), "--bind", "127.0.0.1", "--save", ""]
    if kind == "iperf3":
        return ["iperf3", "-s", "-B", "127.0.0.1", "-p", str(port)]
    if kind == "sockperf":
        return ["sockperf", "server", "--tcp", "-i", "127.0.0.1", "-p", str(port)]
    for name, size in SIZES.items():
        (stage.dir / name).write_bytes(os.urandom(size))
    conf = stage.dir / "nginx.conf"
    conf.write_text(NGINX.format(dir=stage.dir, port=port,
                                 user="user root;" if os.geteuid() == 0 else ""))
    return ["nginx", "-p", str(stage.dir), "-c", str(conf), "-e", str(stage.dir / "error.log")]


def once(warpsock, measure, mode):
    """One run, with a server of its own."""
    with Stage(warpsock) as stage:
        port = free_port()
        stage.start("server", server_command(stage, measure.server, port), mode=mode)
        if not until(lambda: listens(port)):
            raise SystemExit(f"{measure.server} does not start: {stage.text('server', 'err')}")
        args = [word.replace("{port}", str(port)) for word in measure.client]
        status = stage.run("client", args, mode=mode)
        if status or (mode and ddp_problems(stage.report("client"))):
            raise SystemExit(f"{measure.name}: {args[0]} ended with {status}, "
                             f"{stage.report('client')}: {stage.text('client', 'err')}")
        return measure.read(stage.text("client"))


def compare(warpsock, measure, rounds):
    """Medians over DDP and over TCP."""
    found = {"on": [], None: []}
    for turn in range(rounds):
        for mode in sorted(found, key=str, reverse=turn % 2):
            found[mode].append(once(warpsock, measure, mode))
    return found["on"], found[None]


def table(warpsock, rounds, only=""):
    print(f"{'':36}{'DDP':>9}{'TCP':>9}        ratio    DDP's range")
    for measure in MEASURES:
        if only not in measure.name:
            continue
        ddp, tcp = compare(warpsock, measure, rounds)
        medians = statistics.median(ddp), statistics.median(tcp)
        print(f"{measure.name:36}{medians[0]:9.2f}{medians[1]:9.2f} {measure.unit:5}"
              f"{medians[0] / medians[1]:8.3f}    {min(ddp):.2f}-{max(ddp):.2f}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--only", default="", help="measurements whose name has this word")
    parser.add_argument("warpsock", nargs="?", default=TOP / "build/apps/warpsock")
    given = parser.parse_args()
    table(given.warpsock, given.rounds, given.only)


if __name__ == "__main__":
    main()
