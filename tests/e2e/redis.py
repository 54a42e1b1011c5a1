#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""An unmodified redis-server, redis-cli and redis-benchmark over DDP.

    redis.py WARPSOCK
"""
import shutil
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
import tap  # noqa: E402
from launch import Stage, differences, free_port  # noqa: E402

PIPELINE = 2000
BIG = 1_500_000
UNREAD = 10 * 16 * 3100  # what the benchmarks may leave
NEEDS = ("redis-server", "redis-cli", "redis-benchmark")


def resp(*words):
    return "".join([f"*{len(words)}\r\n"] + [f"${len(word)}\r\n{word}\r\n" for word in words])


class Redis:
    """A server and what talks to it."""

    def __init__(self, stage, mode):
        self.stage = stage
        self.port = str(free_port())
        self.server = stage.start("server", ["redis-server", "--port", self.port, "--save", "",
                                             "--bind", "127.0.0.1", "--dir", str(stage.dir)],
                                  mode=mode)
        stage.wait_text("server", "Ready to accept")

    def cli(self, name, *args, mode="on", **kwargs):
        return self.stage.run(name, ["redis-cli", "-p", self.port, *args], mode=mode, limit=20,
                              **kwargs)

    def stop(self):
        self.server.terminate()
        return self.stage.end(self.server, 20)


def said(stage, name, status, wanted):
    got = stage.text(name)
    if status == 0 and got == wanted:
        return []
    return [f"{name} ended with {status}", got[:200], stage.text(name, "err")[:500]]


def check_values(writer, redis):
    stage = redis.stage
    status = redis.cli("set", "SET", "k", "v")
    writer.case("SET", said(stage, "set", status, "OK\n"))
    status = redis.cli("get", "GET", "k")
    writer.case("GET", said(stage, "get", status, "v\n"))
    big = "0123456789abcdef!" * (BIG // 17)
    (stage.dir / "big").write_text(big)
    with open(stage.dir / "big") as value:
        status = redis.cli("setbig", "-x", "SET", "big", stdin=value)
    writer.case(f"SET of {len(big)} octets", said(stage, "setbig", status, "OK\n"))
    status = redis.cli("getbig", "GET", "big")
    writer.case("GET of them", said(stage, "getbig", status, big + "\n"))
    (stage.dir / "many").write_text(resp("INCR", "counter") * PIPELINE)
    with open(stage.dir / "many") as commands:
        status = redis.cli("pipe", "--pipe", stdin=commands)
    writer.case("a pipeline", [] if f"errors: 0, replies: {PIPELINE}" in stage.text("pipe")
                else [f"status {status}", stage.text("pipe")])
    status = redis.cli("counter", "GET", "counter")
    writer.case("which did its work", said(stage, "counter", status, f"{PIPELINE}\n"))


def check_benchmark(writer, redis, name, *args):
    stage = redis.stage
    status = stage.run(name, ["redis-benchmark", "-p", redis.port, "-q", *args], limit=60)
    report = stage.report(name)
    writer.case(f"redis-benchmark {' '.join(args)}",
                [f"status {status}", stage.text(name, "err")] if status else
                differences(report, {"errors": 0, "fallbacks": {}}))


def check_counts(writer, server, clients):
    """Each connection has two ends; redis-benchmark leaves its last replies unread."""
    sums = {key: sum(report[part][key] for report in clients)
            for part, key in (("connections", "software"), ("bytes", "tx"), ("bytes", "rx"))}
    problems = differences(server, {"connections": {"software": sums["software"], "kernel": 0,
                                                    "verbs": 0, "tcp": 0}})
    for sent, got in ((server["bytes"]["tx"], sums["rx"]), (sums["tx"], server["bytes"]["rx"])):
        if not 0 <= sent - got <= UNREAD:
            problems.append(f"{sent} octets were sent, {got} were read")
    writer.case("both ends count the same", problems)


def on(writer, warpsock):
    with Stage(warpsock) as stage:
        redis = Redis(stage, "on")
        check_values(writer, redis)
        check_benchmark(writer, redis, "bench", "-c", "20", "-n", "5000", "-t", "set,get")
        check_benchmark(writer, redis, "deep", "-c", "10", "-n", "5000", "-P", "16", "-d", "3000",
                        "-t", "set,get")
        check_benchmark(writer, redis, "threads", "-c", "10", "-n", "5000", "--threads", "2",
                        "-t", "set,get")
        status = redis.cli("plain", "SET", "k", "x", mode=None)
        writer.case("a plain client is refused", [] if status else [stage.text("plain")])
        status = redis.cli("again", "GET", "k")
        writer.case("and the server lives on", said(stage, "again", status, "v\n"))
        writer.case("redis-server ends well", [] if redis.stop() == 0 else [stage.text("server")])
        clients = [stage.report(name) for name in ("set", "get", "setbig", "getbig", "pipe",
                                                   "counter", "bench", "deep", "threads", "again")]
        check_counts(writer, stage.report("server"), clients)


def auto(writer, warpsock):
    with Stage(warpsock) as stage:
        redis = Redis(stage, "auto")
        status = redis.cli("plain", "SET", "k", "plain", mode=None)
        writer.case("auto: a plain client", said(stage, "plain", status, "OK\n"))
        status = redis.cli("ddp", "GET", "k")
        writer.case("auto: a client over DDP", said(stage, "ddp", status, "plain\n"))
        status = redis.cli("client", "GET", "k", mode="auto",
                           env={"WARPSOCK_PROBE_TIMEOUT": "10s"})
        writer.case("auto: a client that knows its server is on this host",
                    said(stage, "client", status, "plain\n"))
        writer.case("and takes DDP", differences(stage.report("client"), {"fallbacks": {}}))
        redis.stop()
        writer.case("the server tells them apart", differences(stage.report("server"), {
            "connections": {"software": 2, "kernel": 0, "verbs": 0, "tcp": 1},
            "fallbacks": {"PEER_NOT_MPA": 1}}))


def off(writer, warpsock):
    with Stage(warpsock) as stage:
        redis = Redis(stage, None)
        status = redis.cli("on", "GET", "k", env={"WARPSOCK_START": "500"})
        writer.case("on: a plain server is no server", [] if status else [stage.text("on")])
        redis.stop()


def main():
    warpsock, writer = sys.argv[1], tap.Writer()
    missing = [name for name in NEEDS if not shutil.which(name)]
    if missing:
        print(f"1..0 # SKIP no {' '.join(missing)} here")
        return
    on(writer, warpsock)
    auto(writer, warpsock)
    off(writer, warpsock)
    writer.finish()


if __name__ == "__main__":
    main()
