# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""inetd: cat, a shell script and rsync, executed for each connection as their standard input."""
import os

from play import until
from wire import listens

NEEDS = ("/usr/sbin/inetd", "socat", "rsync")
VERSION = ("dpkg-query", "-W", "-f", "${Version}", "openbsd-inetd")
SERVED = {"PEER_NOT_MPA", "GRACE_EXPIRED"}  # rsync greets
ASKED = {"PEER_NOT_MPA", "PROBE_TIMEOUT"}  # the script waits for an end of line
CONFIG = """127.0.0.1:{cat} stream tcp nowait root /bin/cat cat
127.0.0.1:{sh} stream tcp nowait root {dir}/script script
127.0.0.1:{rsync} stream tcp nowait root /usr/bin/rsync rsync --daemon --config={dir}/rsyncd.conf
"""
SCRIPT = """#!/bin/sh
while read -r line; do
	echo "$line $line"
	[ "$line" != end ] || exec sha256sum
done
"""
RSYNC = """
use chroot = no
[module]
path = {dir}/there
uid = root
gid = root
"""
SIZE = 5_000_000


def script(play, port):
    """A shell that reads line by line executes another program, which reads the rest."""
    (play.dir / "lines").write_bytes(b"one\ntwo\nend\n" + (play.dir / "sent").read_bytes())
    with open(play.dir / "lines", "rb") as file:
        problems = play.client("script", ["socat", "-t", "20", "-", f"TCP:127.0.0.1:{port}"],
                               stdin=file)
    return problems + play.says("script", "one one\ntwo two\nend end\n" + play.digest("sent"))


def play(play):
    ports = {name: play.port() for name in ("cat", "sh", "rsync")}
    (play.dir / "there").mkdir()
    (play.dir / "there" / play.marker).write_text(play.marker * 10)
    for name, text in (("inetd.conf", CONFIG), ("script", SCRIPT), ("rsyncd.conf", RSYNC)):
        (play.dir / name).write_text(text.format(dir=play.dir, **ports))
    os.chmod(play.dir / "script", 0o755)
    (play.dir / "sent").write_text(play.marker * 100)
    server = play.serve("inetd", ["/usr/sbin/inetd", "-d", play.dir / "inetd.conf"],
                        *ports.values())
    with play.wire("inetd", ports["cat"], ports["rsync"]):
        play.case("cat", play.echoed("cat", ports["cat"]))
        problems = play.client("one", ["rsync", f"rsync://127.0.0.1:{ports['rsync']}/module/"
                                       f"{play.marker}", "here"])
        play.case("rsync, a file", problems + play.same("here", f"there/{play.marker}"))
    play.blob("sent", play.some(SIZE))
    play.case("much to cat", play.echoed("much", ports["cat"]))
    play.case("a shell script that ends in another program", script(play, ports["sh"]))
    until(lambda: all(listens(port) for port in ports.values()))
    play.stop("inetd", server, statuses=(0, -15, 143))
