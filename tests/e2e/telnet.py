#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""telnet and its server, which make use of urgent data: telnet.py WARPSOCK.

    this script --- terminal --- telnet ==== DDP ==== telnetd --- terminal --- program

The program writes without end, and this script reads nothing of it until every buffer on the way
is full. Then telnet says IP with a Synch, which is urgent, and its server, which cannot write, is
to hear of it all the same: it interrupts the program, throws away what is on the way, and says so
with an urgent Data Mark. Both look for the mark with SIOCATMARK and select()'s third set.
"""
import os
import pty
import re
import select
import shutil
import signal
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
import tap  # noqa: E402
from launch import Stage  # noqa: E402

PYTHON = "/usr/bin/python3"
TELNETD = "/usr/sbin/telnetd"
LIMIT = 30

SERVER = """
import os, socket, sys
listener = socket.create_server(("127.0.0.1", 0))
print("port", listener.getsockname()[1], flush=True)
connection = listener.accept()[0]
for number in 0, 1, 2:
    os.dup2(connection.fileno(), number)
os.closerange(3, 256)
os.execvp(sys.argv[1], sys.argv[1:])
"""

# What telnetd executes for login: it tells that it was interrupted, and ends when it is told to
LOGIN = """#!/usr/bin/python3
import signal, sys
class Interrupted(Exception):
    pass
def interrupt(*_):
    raise Interrupted
signal.signal(signal.SIGINT, interrupt)
print("begun", flush=True)
try:
    while True:
        print("stuff " * 12, flush=True)
except Interrupted:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
print("interrupted", flush=True)
print("read", sys.stdin.readline().strip(), flush=True)
"""


class Terminal:
    """A program at a terminal of ours."""

    def __init__(self, command):
        self.pid, self.fd = pty.fork()
        if not self.pid:
            os.execvp(command[0], command)
        self.got = b""

    def write(self, text):
        os.write(self.fd, text.encode())

    def wait_for(self, pattern, limit=LIMIT):
        end = time.monotonic() + limit
        while not re.search(pattern, self.got):
            left = end - time.monotonic()
            if left <= 0 or not select.select([self.fd], [], [], left)[0]:
                return False
            try:
                more = os.read(self.fd, 65536)
            except OSError:
                return False
            self.got = (self.got + more)[-100000:]
            if not more:
                return False
        return True

    def end(self):
        end = time.monotonic() + LIMIT
        while time.monotonic() < end:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                return status
            time.sleep(0.01)
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)
        return None


def session(stage, name, mode):
    """What went wrong."""
    login = stage.dir / "login"
    login.write_text(LOGIN)
    login.chmod(0o755)
    stage.start(name, [PYTHON, "-c", SERVER, TELNETD, "-h", "-E", str(login)], mode=mode)
    port = re.search(r"port (\d+)", stage.wait_text(name)).group(1)
    command = ["telnet", "127.0.0.1", port]
    report = stage.dir / f"{name}-client.json"
    if mode:
        command = [stage.warpsock, "run", "--all", "--mode", mode, "--report", str(report), "--",
                   *command]
    client = Terminal(command)
    if not client.wait_for(rb"begun"):
        return ["nothing begins", repr(client.got[-300:])]
    client.write("\x1d")
    if not client.wait_for(rb"telnet> "):
        return ["no prompt", repr(client.got[-300:])]
    time.sleep(1)  # until nothing moves any more
    client.got = b""
    client.write("send ip synch\n")
    problems = []
    if not client.wait_for(rb"interrupted"):
        problems.append("the program was not interrupted")
    client.write("on we go\n")
    if not client.wait_for(rb"read on we go"):
        problems.append("what follows does not arrive")
    status = client.end()
    if problems or status is None:
        problems += [f"status {status}", repr(client.got[-300:])]
    elif mode and '"software": 1,' not in report.read_text():
        problems.append(f"the client's report: {report.read_text()}")
    return problems


def main():
    writer = tap.Writer()
    with Stage(sys.argv[1]) as stage:
        for path in ("telnet", TELNETD):
            if not shutil.which(path):
                writer.skip("telnet", f"no {path} here")
                return writer.finish()
        for mode in (None, "on"):
            writer.case(f"IP and Synch, {mode or 'TCP'}", session(stage, f"s-{mode}", mode))
    return writer.finish()


if __name__ == "__main__":
    sys.exit(main())
