# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""redis: values, publishing, many clients, deep pipelines, a replica, and a log kept under load."""
import os
import shutil
from pathlib import Path

from play import HERE, until

NEEDS = ("redis-server", "redis-cli", "redis-benchmark")
VERSION = ("redis-server", "--version")
ASKED = {"PROBE_TIMEOUT", "PEER_NOT_MPA"}  # it answers once there is an end of line
BENCHMARKS = ((20000, "-t", "set,get"),
              (50000, "-P", "16", "-t", "set,get"),
              (5000, "-P", "32", "-d", "4096", "-t", "set,get"),
              (20000, "--threads", "2", "-t", "set,get,lpush,lrange_100"))
TRIES = 50


def talk(play, cli):
    """Values, a subscriber and a monitor, all with the marker."""
    marker = play.marker
    for name, args, wanted in (("set", ("SET", marker, marker * 100), "OK\n"),
                               ("get", ("GET", marker), f"{marker * 100}\n")):
        problems = play.client(name, [*cli, *args])
        play.case(f"redis-cli {args[0]}", problems + play.says(name, wanted))
    watchers = {"monitor": play.begin("monitor", [*cli, "MONITOR"]),
                "subscribe": play.begin("subscribe", [*cli, "SUBSCRIBE", "channel"])}
    play.wait_text("monitor", "OK")
    play.wait_text("subscribe", "subscribe\nchannel\n1\n")
    problems = play.client("publish", [*cli, "PUBLISH", "channel", marker])
    play.case("PUBLISH reaches one subscriber", problems + play.says("publish", "1\n"))
    return watchers


def watched(play):
    message = f"message\nchannel\n{play.marker}\n"
    until(lambda: message in play.text("subscribe"))
    play.case("the subscriber has the message", play.says("subscribe", message))
    seen = f'"PUBLISH" "channel" "{play.marker}"'
    until(lambda: seen in play.text("monitor"))
    play.case("MONITOR saw it published", play.says("monitor", seen))


def play(play):
    port = play.port()
    server = play.serve("server", ["redis-server", "--port", port, "--bind", "127.0.0.1",
                                   "--save", "", "--dir", play.dir], port, leg="both")
    cli = ["redis-cli", "-p", port]
    with play.wire("redis", port):
        watchers = talk(play, cli)
        watched(play)
    for number, (requests, *args) in enumerate(BENCHMARKS):
        if number == 0:  # MONITOR would be sent all of what follows
            problems = play.client("kill", [*cli, "CLIENT", "KILL", "TYPE", "normal"])
            play.case("CLIENT KILL ends MONITOR",
                      problems + play.account("monitor", watchers["monitor"], (0, 1)))
        problems = play.client(f"bench{number}",
                               ["redis-benchmark", "-p", port, "-q", "--csv", "-c", "50", "-n",
                                play.some(requests), *args])
        play.case(f"redis-benchmark {' '.join(args)}", problems + benchmark(play, number))
    replicate(play, port, cli)
    play.stop("server", server)
    durable(play)
    endless(play)
    play.case("the subscriber ends with the server",
              play.account("subscribe", watchers["subscribe"], (0, 1)))


def written(play, name, cli, key, value):
    """A value that a replica has: WAIT is for what its own connection has written."""
    text = play.dir / f"{name}.in"
    text.write_text(f"SET {key} {value}\nWAIT 1 20000\n")
    with open(text, "rb") as file:
        return play.client(name, cli, stdin=file) + play.says(name, "OK\n1\n")


def replicate(play, port, cli):
    """A replica is its master's client, and gets all that there is from a child of the master."""
    other = play.port()
    replica = play.serve("replica", ["redis-server", "--port", other, "--bind", "127.0.0.1",
                                     "--save", "", "--dir", play.dir, "--replicaof",
                                     f"127.0.0.1 {port}"], other, role="middle", leg="both")
    problems = play.client("delay", [*cli, "CONFIG", "SET", "repl-diskless-sync-delay", "0"])
    problems += written(play, "last", cli, "last", play.marker)
    problems += play.client("there", ["redis-cli", "-p", other, "MGET", "last", play.marker],
                            leg="ddp")
    play.case("a replica has it all", problems + play.says(
        "there", f"{play.marker}\n{play.marker * 100}\n") + play.says("server", "Full resync"))
    again = "Partial resynchronization request from 127.0.0.1:"
    problems = play.client("cut", [*cli, "CLIENT", "KILL", "TYPE", "replica"])
    problems += play.client("after", [*cli, "SET", "last", "after"])
    until(lambda: again in play.text("server"))
    problems += written(play, "more", cli, "more", play.marker)
    problems += play.client("there-again", ["redis-cli", "-p", other, "GET", "last"], leg="ddp")
    play.case("cut off, it goes on where it was", problems + play.says("server", again) +
              play.says("there-again", "after\n"))
    play.stop("replica", replica)


def rewritten(play):
    """Its folder holds a second log, and this one is whole."""
    said = play.dir / "aof" / "appendonlydir" / "appendonly.aof.manifest"
    return said.exists() and "seq 2 type b" in said.read_text()


def durable(play):
    """Each command is logged before it is answered; the log is written anew, and the server
    executes itself, under load; what was answered has to be in what the log gives back."""
    port = play.port()
    args = [shutil.which("redis-server"), "--port", port, "--bind", "127.0.0.1", "--save", "",
            "--dir", play.dir / "aof", "--appendonly", "yes", "--appendfsync", "always",
            "--enable-debug-command", "yes"]
    cli = ["redis-cli", "-p", port]
    load = ["redis-benchmark", "-p", port, "-q", "--csv", "-c", "20", "-r", "5000", "-t",
            "set,incr,lpush", "-n"]
    (play.dir / "aof").mkdir()
    server = play.serve("logged", args, port)
    problems = play.client("keep", [*cli, "SET", "kept", play.marker])
    busy = play.begin("busy", [*load, play.some(10000)])
    problems += play.client("rewrite", [*cli, "BGREWRITEAOF"])
    play.case("its log is written anew under load", problems + play.account("busy", busy) +
              ([] if until(lambda: rewritten(play)) else play.both("logged")))
    busy = play.begin("cut-off", [*load, 1000000])
    side = ["python3", HERE / "redis_side.py"]
    writes = play.begin("written", [*side, "write", port, play.dir / "answered"])
    play.wait_text("written", "all write", 60)
    until(lambda: play.text("cut-off") or busy.poll() is not None, 1)
    problems = play.client("restart", [*cli, "DEBUG", "RESTART"], (0, 1))
    problems += play.account("written", writes)
    until(lambda: play.text("logged").count("Ready to accept connections") == 2)
    problems += play.client("kept", [*cli, "GET", "kept"]) + play.says("kept", play.marker)
    problems += play.client("answered", [*side, "read", port, play.dir / "answered"])
    play.case("it starts itself again under load", problems + cut_off(play, busy))
    problems = play.client("digest", [*cli, "DEBUG", "DIGEST"])
    play.stop("logged", server)
    server = play.serve("logged-again", args, port)
    play.wait_text("logged-again", "Ready to accept connections")
    problems += play.client("digest-again", [*cli, "DEBUG", "DIGEST"])
    problems += play.client("still-there", [*side, "read", port, play.dir / "answered"])
    play.case("what it reads from its log is what it had", problems + play.says(
        "digest-again", play.text("digest")))
    play.stop("logged-again", server)


def cut_off(play, busy):
    """redis-benchmark ends when it reads the end; one that is just writing tries for ever
    (endless)."""
    if until(lambda: busy.poll() is not None):
        return play.account("cut-off", busy, (1,))
    play.end(busy, 0)
    play.rows.append((play.commands["cut-off"], None))
    return []


def seconds(pid):
    """Of a processor, that it has used."""
    field = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return sum(map(int, field[11:13])) / os.sysconf("SC_CLK_TCK")


def spins(play, port):
    """One that is told of the reset by a write, and not by a read, which makes it end."""
    busy = play.begin("endless", ["redis-benchmark", "-p", port, "-c", "1", "-n", "10", "-t",
                                  "set"])
    until(lambda: busy.poll() is not None or seconds(busy.pid) > 1, 60)
    spun = busy.poll() is None
    play.end(busy, 0)
    return spun


def endless(play):
    """redis-benchmark takes any error of a write for EAGAIN, over TCP too, and tries for ever."""
    if play.way.name not in ("both", "neither"):
        return
    port = play.port()
    server = play.serve("reset", ["python3", HERE / "py_side.py", "reset", port], port)
    play.case("redis-benchmark tries for ever behind a reset",
              [] if any(spins(play, port) for _ in range(TRIES)) else ["it ended each time"])
    play.stop("reset", server)


def benchmark(play, number):
    rates = [line for line in play.text(f"bench{number}").splitlines() if line.startswith('"SET"')]
    return [] if rates else ["it does not say how fast SET was"]
