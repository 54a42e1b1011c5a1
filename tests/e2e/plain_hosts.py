#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The servers of plain_servers.py on another host, and clients under `warpsock run --all`.

    plain_hosts.py WARPSOCK

      client, under warpsock          the other host
        a datagram ----------------->  nobody, or a server under warpsock that says no
        its octets ----------------->  a plain server

Nothing that names the server: it notices nothing of us. That is said by its log, and by what lies
between the two hosts (near.py), which has looked into each segment for a Request.
"""
import os
import shutil
import subprocess
import sys

import far
import plain_servers
from launch import Stage, differences, free_port
from near import NEAR, PASS, THERE, Near
from plain_servers import SERVERS, Server, log_of, until

import tap  # noqa: E402  (found by far.py)

HOST = THERE[0]
# Our words, as a server may write them into its log
OURS = ("MPA ID", "WASK")
HTTP = Server(
    ["curl"], lambda folder, port: [
        "/usr/bin/python3", "-u", "-m", "http.server", "--bind", "127.0.0.1", "--directory", folder,
        str(port)],
    plain_servers.curl, "the page\nthe page\n", 2, (b"", b""), "", "MPA ID")


def there(words):
    """For the other host, which has another address."""
    return [str(word).replace("127.0.0.1", HOST) for word in words]


class Asked:
    """A plain server on the other host, and perhaps one under warpsock beside it."""

    def __init__(self, warpsock, near, server, answers):
        self.stage, self.server, self.port, self.near = Stage(warpsock), server, free_port(), near
        folder = self.stage.dir
        (folder / "page").write_text("the page\n")
        (folder / "select.sql").write_text("SELECT 1;\n")
        args = there(server.args(folder, self.port))
        for name in ("nginx.conf", "sshd"):
            if (folder / name).exists():
                text = (folder / name).read_text()
                (folder / name).write_text(text.replace("127.0.0.1", HOST))
        if (folder / "data/pg_hba.conf").exists():
            with open(folder / "data/pg_hba.conf", "a", encoding="utf-8") as access:
                access.write(f"host all all {NEAR[0]}/32 trust\n")
        self.proc = self.stage.start("server", args, mode=None, preexec_fn=near.enter)
        if answers:
            self.stage.start("answers", ["/usr/bin/python3", "-c", ANSWERS], mode="auto",
                             preexec_fn=near.enter, stdin=subprocess.PIPE)
            self.stage.wait_text("answers", "listens", 30)

    def __enter__(self):
        net = f"/proc/{self.proc.pid}/net"
        if not until(lambda: self.proc.poll() is not None or
                     plain_servers.listens(self.port, net)):
            raise RuntimeError("the server does not listen")
        return self

    def __exit__(self, *_):
        self.stage.__exit__()

    def talk(self, name, mode):
        status = self.stage.run(name, there(self.server.client(self.port)), mode=mode)
        said = self.stage.text(name)
        if status == 0 and self.server.right in said:
            return []
        return [f"{name}: status {status}", said[-300:], self.stage.text(name, "err")[-300:],
                log_of(self.stage)[-300:]]


ANSWERS = """
import socket, sys, time
listener = socket.create_server(("", 9999))
time.sleep(0.3)
print("listens", flush=True)
sys.stdin.read()
"""


def unnoticed(warpsock, near, server, answers):
    with Asked(warpsock, near, server, answers) as asked:
        wrong = asked.talk("plain", None)
        near.between.begin(PASS)
        wrong += asked.talk("client", "auto")
        report = asked.stage.report("client") or {"fallbacks": {}}
        why = report["fallbacks"]
        wrong += differences(report, {"errors": 0, "connections": {
            "software": 0, "kernel": 0, "verbs": 0, "tcp": server.connections}})
        wanted = {"ASK_NO", "ASK_SILENT"} if answers else {"ASK_SILENT"}
        if not why or set(why) - wanted:
            wrong.append(f"fallbacks {why}")
        if not near.between["questions"]:
            wrong.append("nobody was asked")
        if near.between["requests"]:
            wrong.append(f"{near.between['requests']} segments begin with a Request")
        if near.between["syns"] > server.connections:
            wrong.append(f"{near.between['syns']} connections, not {server.connections}")
        log = log_of(asked.stage)
        return wrong + [f"its log has {word}" for word in OURS if word in log]


def main():
    warpsock = os.path.abspath(sys.argv[1])
    if not far.inside():
        return
    writer, near = tap.Writer(), Near()
    try:
        for name, server in {**SERVERS, "Python's http.server": HTTP}.items():
            lacking = [need for need in server.needs if not shutil.which(need)]
            if lacking:
                writer.skip(name, f"no {' '.join(lacking)} here")
            elif name in ("postgres", "sshd") and os.getuid():
                writer.skip(name, "not root")
            else:
                for answers, what in ((False, "nobody answers"), (True, "no")):
                    writer.case(f"{name}: {what}", unnoticed(warpsock, near, server, answers))
    finally:
        near.end()
    writer.finish()


if __name__ == "__main__":
    main()
