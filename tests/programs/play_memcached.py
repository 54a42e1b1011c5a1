# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""memcached: values of many sizes by libmemcached's tools, four threads, and load from memcslap."""
from play import MIB

NEEDS = ("memcached", "memccp", "memccat", "memcstat", "memcrm", "memcslap")
VERSION = ("memcached", "--version")
ASKED = {"PROBE_TIMEOUT", "PEER_NOT_MPA"}  # it answers once there is an end of line
# memccat of 65536 octets leaves the last one of the reply, memcslap what answers its QUIT
UNREAD = 1 + 10 * 24
SIZES = (0, 1, 100, 16384, 65536, 500_000, MIB - 1000)


def values(play, servers):
    (play.dir / play.marker).write_text(play.marker * 100)
    names = [play.marker, *(f"value{size}" for size in SIZES)]
    for name, size in zip(names[1:], SIZES):
        play.blob(name, size)
    problems = play.client("store", ["memccp", servers, *names])
    play.case("memccp stores values of many sizes", problems)
    problems = []
    for name in names:
        problems += play.client(f"get-{name}", ["memccat", servers, f"--file=got-{name}", name])
        problems += play.same(name, f"got-{name}")
    play.case("memccat fetches each as it was", problems)


def load(play, servers):
    for test in ("set", "get", "mget"):
        problems = play.client(test, ["memcslap", servers, f"--test={test}", "--concurrency=20",
                                      f"--execute-number={play.some(500)}", "--initial-load=500"])
        play.case(f"memcslap {test}: 20 threads", problems)
    problems = play.client("binary", ["memcslap", servers, "--binary", "--test=get",
                                      "--concurrency=10", f"--execute-number={play.some(500)}",
                                      "--initial-load=500"])
    play.case("memcslap by the binary protocol", problems)


def play(play):
    port = play.port()
    servers = f"--servers=127.0.0.1:{port}"
    server = play.serve("memcached", ["memcached", "-u", "root", "-l", "127.0.0.1", "-p", port,
                                      "-U", "0", "-t", "4", "-m", "64"], port)
    with play.wire("memcached", port):
        values(play, servers)
    load(play, servers)
    problems = play.client("remove", ["memcrm", servers, play.marker])
    problems += play.client("gone", ["memccat", servers, play.marker], (1,))
    play.case("memcrm removes", problems)
    problems = play.client("stat", ["memcstat", servers])
    play.case("memcstat", problems + play.says("stat", "threads: 4"))
    play.stop("memcached", server)
    play.balance("memcached", set(play.commands) - {"memcached"}, UNREAD)
