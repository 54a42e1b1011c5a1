# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Unmodified programs, under the launcher or not: rates, latencies and processor time.

A server of each arm runs all the while, and its clients take turns.
"""
import csv
import json
import os
import re
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

from ends import Failed, cpu_of, free_port
from session import LESS, MORE, Figure

POSTGRES = max(Path("/usr/lib/postgresql").glob("*/bin"), default=Path("/usr/lib/postgresql/bin"))
USER = "postgres"  # it does not run as root
NGINX = """
daemon off; worker_processes 1; pid {folder}/{port}.pid; error_log {folder}/{port}.error; {user}
events {{ worker_connections 512; }}
http {{
	access_log off; sendfile {sendfile}; keepalive_requests 100000000;
	client_body_temp_path {folder}/{port}-body; proxy_temp_path {folder}/{port}-proxy;
	fastcgi_temp_path {folder}/{port}-fastcgi; uwsgi_temp_path {folder}/{port}-uwsgi;
	scgi_temp_path {folder}/{port}-scgi;
	server {{ listen {host}:{port} backlog=1024; root {folder}; }}
}}
"""
FILES = {"1 KiB": 1 << 10, "64 KiB": 64 << 10, "1 MiB": 1 << 20}


@dataclass
class Load:
    """One client of a program, and what it prints."""
    name: str
    args: list  # {port} and {host} are the server's
    figures: list
    read: callable  # what it printed -> values by the figures' keys
    work: callable = None  # what it printed -> in how many units the processor time is divided


class Program:
    """A server for each arm, its processor time, and its clients."""

    def __init__(self, session, place, args, ready=None, **kwargs):
        self.session, self.place, self.args = session, place, args
        self.ready, self.kwargs, self.found = ready, kwargs, {}

    def of(self, arm):
        if arm.key not in self.found:
            port = free_port()
            proc = self.session.ends.serve(arm, self.place, self.args(port), port, **self.kwargs)
            if self.ready:
                self.ready(arm, port)
            self.found[arm.key] = port, proc
        return self.found[arm.key]

    def run(self, arm, load):
        port, server = self.of(arm)
        args = [str(arg).replace("{port}", str(port)).replace("{host}", self.session.host)
                for arg in load.args]
        before = cpu_of(server.pid)
        done = self.session.ends.client(arm, self.place, args)
        cpu = cpu_of(server.pid) - before + done.cpu
        values = load.read(done.text)
        if load.work:
            work = load.work(done.text)
            if work <= 0:
                raise Failed(f"it did nothing: {done.text[-300:]}")
            values["cpu"] = cpu / work
        return values

    def compare(self, loads):
        for load in loads:
            self.session.compare(load.name, self.place.title, load.figures,
                                 lambda arm, load=load: self.run(arm, load))
        self.session.ends.stop()


def matched(pattern, text, scale=1):
    found = re.search(pattern, text)
    if not found:
        raise Failed(f"no {pattern!r} in: {text[-200:]}")
    return float(found[1]) / scale


def cpu(unit):
    return Figure("cpu", f"CPU per {unit}", "s", LESS)


MILLION = cpu("million requests")


def main_place(session):
    return session.places.get("two") or session.places["one"]


# --- redis ------------------------------------------------------------------------------------


def redis_values(text):
    rows = {row[0]: row[1] for row in csv.reader(text.splitlines()) if len(row) > 1}
    return {word: float(rows[word]) / 1000 for word in ("GET", "SET")}


def redis_load(session, clients, size, pipeline=1, slower=1):
    """slower: by how much a round trip takes longer than over loopback."""
    rate = 20000 if clients == 1 else 50000 * pipeline
    number = session.scale.count(rate / slower, 100)
    name = f"{clients} client{'s' if clients > 1 else ''}, {size} B"
    args = ["redis-benchmark", "-h", "{host}", "-p", "{port}", "--csv", "-t", "set,get", "-c",
            clients, "-n", number, "-d", size, "-P", pipeline]
    return Load(name + (f", pipeline {pipeline}" if pipeline > 1 else ""), args,
                [Figure("GET", "GET", "k/s", MORE), Figure("SET", "SET", "k/s", MORE), MILLION],
                redis_values, lambda text: 2 * number / 1e6)


def redis_program(session):
    args = ["redis-server", "--bind", session.host, "--save", "", "--protected-mode", "no"]
    return Program(session, main_place(session), lambda port: [*args, "--port", port])


def redis(session):
    program = redis_program(session)
    loads = [(clients, size) for size in (64, 4096) for clients in (1, 30, 50)
             if session.scale.whole or size == 64 or clients == 50]
    program.compare([redis_load(session, *load) for load in loads]
                    + [redis_load(session, 50, 64, 16)])


# --- memcached --------------------------------------------------------------------------------


# Without a file memaslap makes one in the folder of its user
MEMASLAP = """key
64 64 1
value
1024 1024 1
cmd
0 0.1
1 0.9
"""


def memcached(session):
    conf = session.ends.folder / "memaslap.cnf"
    conf.write_text(MEMASLAP)
    args = ["memcached", "-u", "root", "-l", session.host, "-U", "0", "-t", "1", "-m", "64"]
    program = Program(session, main_place(session), lambda port: [*args, "-p", port])
    number = session.scale.count(50000, 500)
    program.compare([Load(
        "memaslap, 16 clients, 1 KiB", ["memcaslap", "-s", "{host}:{port}", "-T", "1", "-c", "16",
                                        "-x", number, "-F", conf, "-w", "1k"],
        [Figure("rate", "", "k/s", MORE), MILLION],
        lambda text: {"rate": matched(r"TPS: (\d+)", text, 1000)},
        lambda text: matched(r"Ops: (\d+)", text, 1e6))])


# --- nginx ------------------------------------------------------------------------------------


def nginx_program(session, sendfile):
    def args(port):
        folder = session.ends.folder
        for name, size in FILES.items():
            path = folder / name.replace(" ", "")
            if not path.exists():
                path.write_bytes(os.urandom(size))
        conf = folder / f"nginx-{port}.conf"
        conf.write_text(NGINX.format(folder=folder, port=port, host=session.host,
                                     sendfile=sendfile,
                                     user="user root;" if os.geteuid() == 0 else ""))
        return ["nginx", "-p", folder, "-c", conf, "-e", folder / f"{port}.error"]
    return Program(session, main_place(session), args)


def wrk(name):
    path = name.replace(" ", "")
    return ["wrk", "-t", "1", "-c", "50", "-d", "1s", "http://{host}:{port}/" + path]


def nginx(session):
    for sendfile in ("on", "off"):
        names = FILES if session.scale.whole or session.only else ("1 KiB", "64 KiB")
        if session.scale.short or sendfile == "off" and names != FILES:
            names = ("64 KiB",)
        nginx_program(session, sendfile).compare([Load(
            f"wrk, 50 clients, {name}, sendfile {sendfile}", wrk(name),
            [Figure("rate", "", "k/s", MORE), MILLION],
            lambda text: {"rate": matched(r"Requests/sec: *([\d.]+)", text, 1000)},
            lambda text: matched(r"(\d+) requests in", text, 1e6)) for name in names])


def ab(session):
    number = session.scale.count(10000, 100)
    nginx_program(session, "on").compare([Load(
        "no keep-alive, 16 clients, 1 KiB",
        ["ab", "-q", "-n", number, "-c", "16", "http://{host}:{port}/1KiB"],
        [Figure("rate", "", "k/s", MORE), MILLION],
        lambda text: {"rate": matched(r"Requests per second: *([\d.]+)", text, 1000)},
        lambda text: matched(r"Complete requests: *(\d+)", text, 1e6))])


# --- iperf3 and sockperf ----------------------------------------------------------------------


def iperf_end(text):
    end = json.loads(text)["end"]
    return end["sum_received"]


def iperf3(session):
    program = Program(session, main_place(session),
                      lambda port: ["iperf3", "-s", "-B", session.host, "-p", port])
    amount = session.scale.count(1500, 200)
    program.compare([Load(
        title, ["iperf3", "-c", "{host}", "-p", "{port}", "-J", "-n", f"{amount}M",
                *title.split()[1:]],
        [Figure("rate", "", "Gb/s", MORE), cpu("GB")],
        lambda text: {"rate": iperf_end(text)["bits_per_second"] / 1e9},
        lambda text: iperf_end(text)["bytes"] / 1e9)
        for title in ("iperf3", "iperf3 -R", "iperf3 -P 4")])


def sockperf(session):
    for place in session.places.values():
        if place.key == "free" or place.key == "one" and not session.scale.whole:
            continue
        program = Program(session, place, lambda port: [
            "sockperf", "server", "--tcp", "-i", session.host, "-p", port])
        program.compare([Load(
            "ping-pong, 64 B", ["sockperf", "ping-pong", "--tcp", "-i", "{host}", "-p", "{port}",
                                "-t", "1", "-m", "64"],
            [Figure("us", "latency", "us", LESS), cpu("million messages")],
            lambda text: {"us": matched(r"Latency is ([\d.]+)", text)},
            lambda text: 2 * matched(r"ReceivedMessages=(\d+)", text, 1e6))])


# --- PostgreSQL -------------------------------------------------------------------------------


def as_user():
    return {"user": USER} if os.geteuid() == 0 else {}


def cluster(session, port):
    """A copy of a data folder that is made once."""
    made, mine = session.ends.folder / "data", session.ends.folder / f"data-{port}"
    if not made.exists():
        subprocess.run([POSTGRES / "initdb", "-D", made, "-A", "trust", "--no-sync", "-U", USER],
                       check=True, timeout=120, cwd=session.ends.folder, stdout=subprocess.DEVNULL,
                       stderr=subprocess.DEVNULL, **as_user())
    subprocess.run(["cp", "-a", made, mine], check=True, timeout=60)
    return mine


def postgres(session):
    client = ["pgbench", "-h", session.host, "-U", USER, "-p"]

    def args(port):
        return [POSTGRES / "postgres", "-D", cluster(session, port), "-c",
                f"listen_addresses={session.host}", "-p", port, "-k", session.ends.folder, "-c",
                "fsync=off", "-c", "autovacuum=off"]

    def ready(arm, port):
        for _ in range(100):  # it listens before it serves: an early client is refused
            try:
                session.ends.client(arm, place, [*client, port, "-i", "-q", USER])
                return
            except Failed:
                time.sleep(0.1)
        raise Failed("postgres does not serve")

    place = main_place(session)
    program = Program(session, place, args, ready, **as_user())
    program.compare([Load(
        f"pgbench -S, {clients} client{'s' if clients > 1 else ''}",
        [*client, "{port}", "-n", "-S", "-c", clients, "-t",
         session.scale.count(10000 // clients if clients == 1 else 20000 // clients), USER],
        [Figure("rate", "", "k/s", MORE), MILLION],
        lambda text: {"rate": matched(r"tps = ([\d.]+) \(without", text, 1000)},
        lambda text: matched(r"actually processed: (\d+)", text, 1e6)) for clients in (1, 8)])
