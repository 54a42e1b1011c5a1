# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""One server, over TCP or DDP, with its clients: a cell of the matrix has one of each."""
import contextlib
import json
import os
import random
import resource
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent), str(HERE.parent / "e2e")]
import watch  # noqa: E402

LIMIT = 120  # seconds, for what takes one at most
FILES = 20000
PORTS = (15000, 30000)
WARM_UP = 0.2  # seconds: every worker has what it keeps
# With itself
CONNECTS = """
import socket
listener = socket.create_server(("127.0.0.1", 0))
one = socket.create_connection(listener.getsockname())
other = listener.accept()[0]
one.sendall(b"x")
other.recv(1)
"""
MOUNT = 'mount -t tmpfs -o mode=1777,size="$0" tmpfs /dev/shm && exec "$@"'


def low_port():
    """A free one that no client gets for itself, while the server is away"""
    while True:
        port = random.randrange(*PORTS)
        with socket.socket() as sock, contextlib.suppress(OSError):
            sock.bind(("127.0.0.1", port))
            return port


def raise_files():
    """The limit of this process and its clients"""
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def end_all(pids):
    """And waits until none of them has a socket any more"""
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    end = time.monotonic() + LIMIT
    while any((watch.stat_of(pid) or "Z")[0] != "Z" for pid in pids) and time.monotonic() < end:
        time.sleep(0.001)


def full_pipe():
    """Both ends of a pipe that takes nothing more and blocks who tries"""
    ends = os.pipe()
    os.set_blocking(ends[1], False)
    try:
        while True:
            os.write(ends[1], bytes(4096))
    except BlockingIOError:
        os.set_blocking(ends[1], True)
    return ends


class Arm:
    """name: tcp or ddp; mode: of the launcher."""

    def __init__(self, cell, name, mode):
        self.cell, self.name, self.mode = cell, name, mode
        self.stage, self.program, self.stress = cell.stage, cell.program, cell.stress
        self.port, self.starts, self.server, self.probe = low_port(), 0, None, None
        self.folder = self.stage.dir / name
        self.folder.mkdir()
        self.runtime = Path(f"/dev/shm/warpsock-pressure-{os.getpid()}-{self.port}")
        self.pipe = full_pipe() if self.stress.errors == "pipe" else None
        self.problems = []

    # --- processes

    def launched(self, args, name, **env):
        """Arguments and environment, under the launcher where the arm has one."""
        if not self.mode:
            return [str(arg) for arg in args], env
        for side in "server", "clients":
            (self.runtime / side).mkdir(0o700, parents=True, exist_ok=True)
        args = [self.stage.warpsock, "run", "--all", "--mode", self.mode, "--report",
                self.stage.dir / f"{name}.json", "--", *args]
        side = "server" if "server" in name else "clients"
        if not self.stress.shm or side == "clients":
            env["WARPSOCK_RUNTIME_DIR"] = str(self.runtime / side)
        return [str(arg) for arg in args], env

    def files(self):
        return min(self.stress.limits.get("nofile", FILES),
                   resource.getrlimit(resource.RLIMIT_NOFILE)[1])

    def limited(self, args):
        limits = {**self.stress.limits, "nofile": self.files()}
        return ["prlimit", *(f"--{name}={limit}:{limit}" for name, limit in limits.items()), *args]

    def start(self):
        """Starts the server, and waits until it listens."""
        name = f"{self.name}-server{self.starts + 1}"
        args = self.program.command(self.cell.server, self.folder, self.port, self.files())
        args, env = self.launched(args, name, **self.stress.env)
        if self.stress.preload:
            env["LD_PRELOAD"] = self.cell.no_thread
        if self.pipe:
            args = ["sh", "-c", f'exec "$@" 2>/proc/self/fd/{self.pipe[1]}', "-", *args]
        if self.stress.shm:
            args = ["unshare", "-m", "--propagation", "private", "sh", "-c", MOUNT,
                    self.stress.shm, *args]
        self.server = self.stage.start(name, self.limited(args), mode=None, env=env,
                                       pass_fds=self.pipe[1:] if self.pipe else ())
        self.starts += 1
        self.wait_listening()

    def listens(self):
        wanted = f"0100007F:{self.port:04X} 00000000:0000 0A"
        return wanted in Path("/proc/net/tcp").read_text()

    def wait_listening(self):
        end = time.monotonic() + LIMIT
        while not self.listens():
            if time.monotonic() > end or self.server.poll() is not None:
                raise RuntimeError(f"{self.name}: the server does not listen: {self.said()}")
            time.sleep(0.005)

    def said(self):
        if not self.starts:
            return ""
        return self.stage.text(f"{self.name}-server{self.starts}", "err")[-800:]

    def store(self):
        """The long answer of redis"""
        if self.program.protocol != "redis":
            return
        self.problems += self.end(self.client("store"))

    def client(self, kind, *args):
        """A client of client.py; it is talked to by its standard input and output."""
        name = f"{self.name}-{kind}"
        args, env = self.launched([sys.executable, HERE / "client.py", kind, self.program.protocol,
                                   self.port, *args], name)
        return self.talker(name, args, env)

    def stranger(self, kind, word=""):
        args = [sys.executable, HERE / "raw.py", kind, self.name, self.program.protocol, self.port,
                word]
        return self.talker(f"{self.name}-{kind}", [str(arg) for arg in args], {})

    def talker(self, name, args, env):
        with open(self.stage.dir / f"{name}.err", "ab") as err:
            proc = subprocess.Popen(args, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                    stderr=err, env=dict(os.environ, **env), text=True)
        proc.name = name
        self.stage.running.append(proc)
        return proc

    def hear(self, proc, limit=LIMIT):
        """A line of a client's"""
        timer = threading.Timer(limit, proc.kill)
        timer.start()
        line = proc.stdout.readline()
        timer.cancel()
        if not line:
            raise RuntimeError(f"{proc.name} is silent: "
                               f"{self.stage.text(proc.name, 'err')[-800:]}")
        return line

    def end(self, proc, limit=LIMIT):
        """Ends a client by the end of its input; returns what it complains of."""
        timer = threading.Timer(limit, proc.kill)
        timer.start()
        said = proc.communicate()[0]
        timer.cancel()
        self.stage.running.remove(proc)
        if proc.returncode:
            said += f"status {proc.returncode} {self.stage.text(proc.name, 'err')[-800:]}"
        return [f"{proc.name}: {line}" for line in said.splitlines()]

    # --- the other client

    def begin(self):
        self.start()
        self.probe = self.client("probe")
        self.hear(self.probe)
        self.store()
        self.ask(WARM_UP, new=True)

    def ask(self, seconds, new=None):
        stress = self.stress
        new = stress.new if new is None else new
        print(seconds, int(new), int(stress.patient), file=self.probe.stdin, flush=True)
        return json.loads(self.hear(self.probe, LIMIT + seconds))

    def stop(self, number=signal.SIGTERM):
        self.server.send_signal(number)
        if self.stage.end(self.server, LIMIT) is None:
            self.problems.append(f"{self.name}: the server did not end")

    def restart(self):
        self.stop()
        self.start()

    def kill(self):
        """The first process of the server, and then those it leaves, which hold the port."""
        family = watch.family(self.server.pid)
        self.stop(signal.SIGKILL)
        end_all(family)
        self.start()

    # --- what it has

    def names(self):
        """Where the server's names are"""
        if self.stress.shm:
            return Path(f"/proc/{self.server.pid}/root/dev/shm")
        return self.runtime / "server"

    def snapshot(self):
        return watch.snapshot(self.server.pid, self.names())

    def settled(self, before, grown):
        return watch.settled(self.server.pid, self.names(), before, grown)

    def sweep(self, folder):
        """A program that makes a connection removes what killed processes have left there."""
        args = [self.stage.warpsock, "run", "--all", "--mode", "on", "--", sys.executable, "-c",
                CONNECTS]
        subprocess.run(args, check=False, timeout=LIMIT, capture_output=True,
                       env=dict(os.environ, WARPSOCK_RUNTIME_DIR=str(folder)))

    def close(self):
        """Ends all; returns what is wrong, among it names that are left."""
        wrong = self.end(self.probe)
        on_ddp = [self.stage.report(f"{self.name}-probe")] if self.mode else []
        self.stop()
        for report in on_ddp:
            if not report or not report["connections"]["software"]:
                wrong.append(f"{self.name}: nothing was on DDP: {report}")
        for folder in self.runtime.glob("*"):
            if folder.name in self.stress.leaves:
                continue
            self.sweep(folder)
            left = watch.left_in(folder)
            if left:
                wrong.append(f"{self.name}: {left} names of the {folder.name} are left")
        return self.problems + wrong

    def remove(self):
        if self.server and self.server.poll() is None:
            end_all(watch.family(self.server.pid))
        shutil.rmtree(self.runtime, ignore_errors=True)
        for end in self.pipe or ():
            os.close(end)

