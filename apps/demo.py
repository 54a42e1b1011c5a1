#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Programs that know nothing of RDMA talk over iWARP, and two judges read the wire.

    redis-benchmark, curl                                redis-server, nginx
          | socket calls                                       | socket calls
       warpsock ------- TCP on lo: MPA / DDP / RDMAP ------ warpsock
                                  |
                               tcpdump --- fpdu_check.py, tshark

    demo.py [WARPSOCK]

Nothing is believed: each program's report must count no TCP connection, the file must arrive with
its SHA-256, every TCP payload octet after start-up must lie in an FPDU with a good CRC32c by both
judges, who must count as many FPDUs as the reports, and the file must be in their payload. Exit
status 1: something is not so. 77: this machine lets nobody capture.
"""
import itertools
import os
import re
import shlex
import subprocess
import sys
import time
from pathlib import Path

TOP = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(TOP / "tests/programs"))

from play import MIB, Stage, Wire, free_port, listens, sha256, until  # noqa: E402
from way import WAYS  # noqa: E402
from wire import fpdu_check  # noqa: E402

SIZE = 100 * MIB
RATE = "60M"  # what a capture on one processor keeps up with
LOADS = {"single": ("-c", "50", "-n", "10000", "-t", "set,get"),
         "pipelined": ("-c", "50", "-n", "50000", "-P", "16", "-t", "set,get")}
RUN = "warpsock run --all --mode on --"
NGINX = """
daemon off; worker_processes 2; pid {dir}/nginx.pid; error_log {dir}/error.log; {user}
events {{ worker_connections 64; }}
http {{
	access_log off; sendfile on; client_body_temp_path {dir}/body; proxy_temp_path {dir}/proxy;
	fastcgi_temp_path {dir}/fastcgi; uwsgi_temp_path {dir}/uwsgi; scgi_temp_path {dir}/scgi;
	server {{ listen 127.0.0.1:{port}; root {dir}/files; }}
}}
"""


TELLING = re.compile(r"ULPDU|CRC|Steering|offset|Queue|sequence number:|OpCode|^Data")


class Failed(Exception):
    pass


def say(*words, **how):
    print(*words, flush=True, **how)


def need(condition, what):
    if not condition:
        raise Failed(what)


class Pair:
    """A server, a capture of its port, and the clients that were run."""

    def __init__(self, stage, name):
        self.stage, self.name, self.port = stage, name, free_port()
        self.wire = Wire(stage.dir, [self.port])
        self.clients = []
        self.server = None

    def begin(self, args):
        self.wire.start()
        if self.wire.why:
            say(f"demo: {self.wire.why}")
            sys.exit(77)
        say(f"$ {RUN} {self.shown(args)} &")
        self.server = self.stage.start(self.name, args)
        need(until(lambda: listens(self.port)), f"{self.name}: {self.said(self.name)}")

    def said(self, name):
        return (self.stage.text(name) + self.stage.text(name, "err")).strip()[-500:]

    def shown(self, args):
        return shlex.join(args).replace(f"{self.stage.dir}/", "").replace(str(self.stage.dir), ".")

    def client(self, name, args):
        say(f"$ {RUN} {self.shown(args)}")
        status = self.stage.run(name, args)
        need(status == 0, f"{args[0]} ended with {status}: {self.said(name)}")
        self.clients.append(name)

    def end(self):
        """Of the server and the capture; the reports of all have to be without TCP."""
        self.server.terminate()
        need(self.stage.end(self.server) == 0, f"{self.name}: {self.said(self.name)}")
        self.wire.stop()
        for name in (self.name, *self.clients):
            problems = WAYS["both"].problems(self.stage.report(name), None)
            need(not problems, f"{name}: {problems}")

    def report(self):
        return self.stage.report(self.name)


# --- the programs -------------------------------------------------------------------------------


def redis(stage, pair):
    pair.begin(["redis-server", "--port", str(pair.port), "--bind", "127.0.0.1", "--save", "",
                "--dir", str(stage.dir)])
    for name, args in LOADS.items():
        pair.client(name, ["redis-benchmark", "-p", str(pair.port), "-q", *args])
        rates = re.findall(r"[GS]ET: [\d.]+ requests per second.*", stage.text(name))
        need(len(rates) == 2, f"redis-benchmark says: {pair.said(name)}")
        say(*(f"    {rate.strip()}\n" for rate in rates), sep="", end="")
    pair.end()


def nginx(stage, pair):
    (stage.dir / "files").mkdir()
    file, got = stage.dir / "files/file", stage.dir / "got"
    with open(file, "wb") as out:
        for _ in range(SIZE // MIB):
            out.write(os.urandom(MIB))
    conf = stage.dir / "nginx.conf"
    user = "user root;" if os.geteuid() == 0 else ""
    conf.write_text(NGINX.format(dir=stage.dir, port=pair.port, user=user))
    pair.begin(["nginx", "-p", str(stage.dir), "-e", str(stage.dir / "error.log"), "-c",
                str(conf)])
    pair.client("curl", ["curl", "-sSf", "--limit-rate", RATE, "-o", str(got),
                         f"http://127.0.0.1:{pair.port}/file"])
    sums = [sha256(path) for path in (file, got)]
    say(f"    served  {sums[0]}", f"    fetched {sums[1]}", sep="\n")
    need(sums[0] == sums[1] and got.stat().st_size == SIZE, "the file did not arrive whole")
    pair.end()


# --- the judges ---------------------------------------------------------------------------------


def tshark(pair, *args):
    """Its lines as they come. MPA goes first: a client's port may be that of another protocol."""
    command = ["tshark", "-r", str(pair.wire.path), "--disable-protocol", "rpcordma", "-o",
               "tcp.try_heuristic_first:TRUE", *args]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
                          errors="replace") as proc:
        yield from proc.stdout
    need(proc.returncode == 0, f"tshark ended with {proc.returncode}")


def judged_by_tshark(pair):
    good = bad = 0
    for line in tshark(pair, "-V"):
        good += "(Good CRC32)" in line
        bad += bool(re.search(r"bad crc|malformed", line, re.I))
    return good, bad


def judge(pair):
    """Both judges, and the report beside them. How many FPDUs there were, and the walks."""
    try:
        walks = fpdu_check.check(pair.wire.path, pair.port)
    except fpdu_check.Wrong as wrong:
        raise Failed(f"not every octet on the wire is in a good FPDU: {wrong}") from wrong
    report = pair.report()
    fpdus = sum(side.fpdus for walk in walks for side in walk)
    good, bad = judged_by_tshark(pair)
    say(f"    report      {report['connections']['software']} connections on DDP, "
        f"{report['connections']['tcp']} on TCP, {sum(report['fpdus'].values())} FPDUs")
    say(f"    fpdu_check  {fpdu_check.summary(walks)}")
    say(f"    tshark      {good} FPDUs with a good CRC, {bad} bad or malformed")
    need(report["connections"]["software"] == len(walks), "another number of connections")
    need(sum(report["fpdus"].values()) == fpdus == good, "another number of FPDUs")
    need(not bad, "tshark finds fault")
    return fpdus, walks


def show_frames(pair):
    """The start of a connection, and of what carries a SET what says most."""
    for line in itertools.islice(tshark(pair, "-Y", "iwarp_mpa || iwarp_ddp_rdmap"), 5):
        say(f"    {line.rstrip()[:110]}")
    detail = tshark(pair, "-Y", 'iwarp_ddp_rdmap && frame contains "SET"', "-O",
                    "iwarp_mpa,iwarp_ddp_rdmap")
    for line in itertools.takewhile(str.strip, detail):
        if TELLING.search(line):
            say(f"    {line.rstrip()}")


def play(stage):
    """The pairs of programs, which have ended."""
    pairs = []
    for name, part in (("redis-server", redis), ("nginx", nginx)):
        pair = Pair(stage, name)
        try:
            part(stage, pair)
        finally:
            pair.wire.stop()
        pairs.append(pair)
    return pairs


def demo(stage):
    started = time.monotonic()
    pairs = play(stage)
    found = []
    for pair in pairs:
        say(f"\nWhat was on the wire of {pair.name}:")
        found.append(judge(pair))
    payload = found[1][1][0][1].payload
    file = (stage.dir / "files/file").read_bytes()
    need(payload.endswith(file), "the file is not what the FPDUs carried")
    say("\nSome of redis-server's frames:")
    show_frames(pairs[0])
    connections = sum(pair.report()["connections"]["software"] for pair in pairs)
    say(f"\nProved in {time.monotonic() - started:.0f} s: redis-benchmark with redis-server, and "
        f"curl fetching 100 MiB with its SHA-256\nfrom nginx, all unmodified, had "
        f"{connections} connections, none of them on plain TCP: every TCP payload octet\nafter "
        f"start-up lay in one of {found[0][0] + found[1][0]} FPDUs with a good CRC32c, by two "
        f"independent judges and\nby the reports' count, and the file was these FPDUs' payload.")


def main():
    warpsock = sys.argv[1] if len(sys.argv) > 1 else TOP / "build/apps/warpsock"
    try:
        with Stage(warpsock) as stage:
            demo(stage)
    except (Failed, OSError, subprocess.SubprocessError) as error:
        sys.exit(f"demo: FAILED: {error}")


if __name__ == "__main__":
    main()
