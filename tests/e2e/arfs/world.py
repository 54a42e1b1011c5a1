# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""A server of ARFS, and clients that mount it, in a mount namespace of the test's own.

    store file <- warp-arfs-server <-- warp-arfs (active)     on DIR/active
                                   <-- warp-arfs -1           on DIR/one-sided
"""
import os
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "e2e")]
import tap  # noqa: E402
from example import Server, run, start, until  # noqa: E402

HOST = "127.0.0.1"
LONG = os.environ.get("WARPSOCK_LONG") == "1"
WAYS = {"active": [], "one-sided": ["-1"]}


def enter(writer, network=False):
    """The rest of the test runs where its mounts, and its network, are its own; or does not."""
    if not os.path.exists("/dev/fuse"):
        writer.skip("all of it", "no mount of our own: there is no /dev/fuse")
        writer.finish()
    if os.environ.get("ARFS_INSIDE"):
        return
    how = ["unshare", "-m"] if os.geteuid() == 0 else ["unshare", "-Urm"]
    how += ["-n"] if network else []
    if subprocess.run([*how, "true"], capture_output=True, check=False).returncode:
        writer.skip("all of it", "no mount namespace is to be had")
        writer.finish()
    os.environ["ARFS_INSIDE"] = "1"
    os.execvp("unshare", [*how, sys.executable, *sys.argv])


class World:
    """A store, its server, and mounts; all end with the block."""

    def __init__(self, server, mount, mib=64):
        self.server_program, self.mount_program, self.mib = server, mount, mib
        self.clients = {}

    def __enter__(self):
        self.folder = tempfile.TemporaryDirectory()
        self.path = Path(self.folder.name)
        self.store = self.path / "store"
        self.made = run(self.server_program, "make", self.store, str(self.mib))
        self.port = "0"
        self.serve()
        return self

    def serve(self, *options):
        """The same port when it comes again, for clients that are there."""
        self.server = Server(self.server_program, "serve", "-a", HOST, "-p", self.port, *options,
                             str(self.store))
        self.server.__enter__()
        self.port = self.server.port

    def mount(self, name, *options):
        at = self.path / name
        at.mkdir(exist_ok=True)
        words = [self.mount_program, "-f", "-a", HOST, "-p", self.port, *options, str(at)]
        self.clients[name] = start(*words)
        device = os.stat(self.path).st_dev
        if not until(lambda: os.stat(at).st_dev != device, 10):
            raise RuntimeError(f"no mount: {self.clients[name].communicate()[1]}")
        return at

    def unmount(self, name):
        process = self.clients.pop(name)
        process.terminate()
        try:
            return process.wait(10)
        finally:
            subprocess.run(["umount", "-l", self.path / name], capture_output=True, check=False)

    def check(self):
        """What is wrong with the store, once nobody has it."""
        return run(self.server_program, "check", self.store).problems()

    def end(self):
        """All end in order; what is wrong with that, and with the store."""
        problems = []
        for name in list(self.clients):
            status = self.unmount(name)
            problems += [f"{name} ended with {status}"] if status else []
        return problems + self.server.stop().problems() + self.check()

    def __exit__(self, *error):
        for name in list(self.clients):
            self.clients[name].kill()
            self.unmount(name)
        self.server.__exit__(*error)
        self.folder.cleanup()

