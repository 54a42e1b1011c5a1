# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Programs under the launcher: started, waited for, and asked what they report."""
import json
import os
import shutil
import socket
import subprocess
import tempfile
import time
from pathlib import Path

LIMIT = 60
# Echoes in a thread for each connection; it says its port
ECHO_SERVER = """
import socket, threading
threading.stack_size(65536)
def serve(conn):
    with conn:
        while data := conn.recv(1000):
            conn.sendall(data)
listener = socket.create_server(("127.0.0.1", 0), backlog=1000)
print(listener.getsockname()[1], flush=True)
while True:
    threading.Thread(target=serve, args=listener.accept()[:1], daemon=True).start()
"""


class Stage:
    """A scratch folder and the programs started in it; none of them outlives it."""

    def __init__(self, warpsock):
        self.warpsock = os.path.abspath(warpsock)
        self.dir = Path(tempfile.mkdtemp(prefix="warpsock-e2e-"))
        self.running = []

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for proc in self.running:
            proc.terminate()  # some have processes of their own to end
        for proc in list(self.running):
            self.end(proc, 5)
        try:
            shutil.rmtree(self.dir)
        except OSError:  # a process that ends late has just written its report
            time.sleep(1)
            shutil.rmtree(self.dir)

    def start(self, name, args, mode="on", rules=None, env=None, **kwargs):
        """mode None: without the launcher; rules: these, and not all. What it says goes to
        NAME.out and NAME.err."""
        if mode:
            what = [word for rule in rules for word in ("--use", rule)] if rules is not None \
                else ["--all", "--mode", mode]
            args = [self.warpsock, "run", *what, "--report", str(self.dir / f"{name}.json"),
                    "--", *args]
        paths = [self.dir / f"{name}.{stream}" for stream in ("out", "err")]
        with open(paths[0], "wb") as out, open(paths[1], "wb") as err:
            kwargs.setdefault("stdin", subprocess.DEVNULL)
            proc = subprocess.Popen(args, stdout=out, stderr=err, cwd=kwargs.pop("cwd", self.dir),
                                    env=dict(os.environ, **(env or {})), **kwargs)
        self.running.append(proc)
        return proc

    def end(self, proc, limit=LIMIT):
        """Its exit status; None: it did not end in time."""
        try:
            status = proc.wait(limit)
        except subprocess.TimeoutExpired:
            proc.kill()
            proc.wait()
            status = None
        self.running.remove(proc)
        return status

    def run(self, name, args, **kwargs):
        limit = kwargs.pop("limit", LIMIT)
        return self.end(self.start(name, args, **kwargs), limit)

    def text(self, name, stream="out"):
        return (self.dir / f"{name}.{stream}").read_text(errors="replace")

    def wait_text(self, name, wanted="\n", limit=10):
        """Until its output holds the wanted text."""
        end = time.monotonic() + limit
        while wanted not in self.text(name):
            if time.monotonic() > end:
                raise RuntimeError(f"{name} does not say {wanted!r}: {self.text(name, 'err')}")
            time.sleep(0.01)
        return self.text(name)

    def report(self, name):
        path = self.dir / f"{name}.json"
        return json.loads(path.read_text()) if path.exists() else None


def free_port():
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return sock.getsockname()[1]


def counts_left(user):
    """Files of commands of this user that have ended."""
    return [name for name in os.listdir("/dev/shm") if name.startswith(f"warpsock-counts-{user}-")
            and not os.path.exists("/proc/" + name.rpartition("-")[2])]


def in_time(meeting):
    """meeting() gives what is wrong, and what was too late, which a busy machine may be the reason
    of: for that alone it is held again, a few times. What is wrong at last."""
    late = []
    for _ in range(5):
        wrong, late = meeting()
        if wrong or not late:
            return wrong
    return late


def report_of(software, tx, rx, **others):
    """What a report should say of connections and octets."""
    return {"connections": {"software": software, "kernel": 0, "verbs": 0, "tcp": 0},
            "fallbacks": {}, "bytes": {"tx": tx, "rx": rx}, "errors": 0, **others}


def differences(report, wanted):
    if report is None:
        return ["there is no report"]
    return [f"{key}: {report.get(key)}, not {value}" for key, value in wanted.items()
            if report.get(key) != value]
