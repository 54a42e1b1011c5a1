#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""A client whose route leads over a device that is made up (fake_rdma.c): who serves it, and why.

    device.py WARPSOCK LIBRARY

    +-- mount namespace of its own ----------------------------------+
    |  /sys/class/infiniband/made-up0                                |
    |  client: LIBRARY as libibverbs and librdmacm --- the device    |
    |             \\__ TCP over loopback ___ server, by software      |
    +----------------------------------------------------------------+
"""
import json
import os
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
sys.path.insert(0, str(ROOT))
import tap  # noqa: E402

LIMIT = 60
UNREACHABLE, TIMEWAIT = "7", "15"  # of enum rdma_cm_event_type; the latter tells nothing
ROCE = {"FAKE_ROCE": "1"}
VERBS = {"WARPSOCK_PROVIDER": "verbs"}
# Machines may be slow
SLOW = {"WARPSOCK_LINGER": "1", "WARPSOCK_PROBE_TIMEOUT": "20s"}
SOON = {"WARPSOCK_PROBE_TIMEOUT": "1s"}
ALL = ("--all", "--mode", "on")
AUTO = {"plain": ("--all",)}  # what listen.py has that is not in mode on
SOFT, FALLEN = {}, {"PROVIDER_UNAVAILABLE": 2}

# What the device is like and the user wants, and why the two connections were not its own
CASES = (
    ("a RoCE device that finds nobody", ROCE | VERBS | {"FAKE_CONNECTED": UNREACHABLE}, ALL,
     FALLEN),
    ("a RoCE device that hears nothing", ROCE | VERBS | {"FAKE_CONNECTED": TIMEWAIT} | SOON, ALL,
     FALLEN),
    ("the same in AUTO", ROCE | VERBS | {"FAKE_CONNECTED": UNREACHABLE},
     ("--use", "auto client * 127.0.0.1:*"), FALLEN),
    ("no memory can be registered", VERBS | {"FAKE_REGIONS": "0"}, ALL, FALLEN),
    ("memory for its ring cannot", VERBS | {"FAKE_REGIONS": "3"}, ALL, FALLEN),
    ("no permission", VERBS | {"FAKE_ERRNO": "13"}, ALL, FALLEN),
    ("the route leads elsewhere", VERBS | {"FAKE_ELSEWHERE": "1"}, ALL, FALLEN),
    ("by the route, to this host", {}, ALL, SOFT),
    ("by the route, elsewhere", {"FAKE_ELSEWHERE": "1"}, ALL, SOFT),
    ("a rule says soft", VERBS, ("--use", "ddp client * *:* provider soft"), SOFT),
    ("a rule says verbs", {"FAKE_REGIONS": "0"}, ("--use", "ddp client * *:* provider verbs"),
     FALLEN),
    ("a rule says auto", VERBS | {"FAKE_ERRNO": "13"},
     ("--use", "ddp client * *:* provider auto"), FALLEN),
)


class Device:
    def __init__(self, warpsock, library, folder):
        self.warpsock, self.folder = warpsock, folder
        for name in ("libibverbs.so.1", "librdmacm.so.1"):
            (folder / name).symlink_to(library)

    def command(self, words, env, program):
        return dict(args=[self.warpsock, "run", *words, "--", sys.executable, *program],
                    env=os.environ | SLOW | env, text=True,
                    stdout=subprocess.PIPE, stderr=subprocess.STDOUT)

    def client(self, words, env, program):
        return subprocess.run(**self.command(
            words, {"LD_LIBRARY_PATH": str(self.folder)} | env, program), timeout=LIMIT,
            check=False)

    def served(self, words, env, program):
        """Two connections of @program to a server: what the client says, its report."""
        report = self.folder / "report"
        report.unlink(missing_ok=True)
        port = free_port()
        server = subprocess.Popen(**self.command(
            ALL, {"WARPSOCK_PROVIDER": "soft"},
            [ROOT / "vm/stream.py", "serve", "127.0.0.1", str(port), "2"]))
        try:
            await_port(port)
            done = self.client(words, env | {"WARPSOCK_REPORT": str(report)},
                               [*program[:2], "127.0.0.1", str(port), "2", *program[2:]])
            if not done.returncode:
                server.communicate(timeout=LIMIT)
        finally:
            server.kill()
        return done, json.loads(report.read_text() or "{}") if report.exists() else {}


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def await_port(port):
    until = time.monotonic() + LIMIT
    while f":{port:04X} 00000000:0000 0A" not in Path("/proc/net/tcp").read_text():
        if time.monotonic() > until:
            raise TimeoutError("no server")
        time.sleep(0.05)


def providers(writer, device):
    programs = (("blocking", (ROOT / "vm/stream.py", "talk", "50000")),
                ("nonblocking", (ROOT / "vm/events.py", "talk", "soft")))
    for name, env, words, why in CASES:
        for how, program in programs:
            done, report = device.served(words, env, program)
            wrong = [] if not done.returncode else [f"status {done.returncode}"]
            if report.get("connections") != {"software": 2, "kernel": 0, "verbs": 0, "tcp": 0} or \
                    report.get("errors"):
                wrong.append(f"report: {report}")
            if report.get("fallbacks") != why:
                wrong.append(f"reasons: {report.get('fallbacks')}")
            writer.case(f"{name}, {how}: software serves",
                        wrong and [*wrong, *done.stdout.split("\n")])


def unloadable(writer, device):
    """A host that has the device and not the libraries: it is told of that once."""
    folder = device.folder / "unloadable"
    folder.mkdir()
    (folder / "libibverbs.so.1").touch()
    done, report = device.served(ALL, VERBS | {"LD_LIBRARY_PATH": str(folder)},
                                 (ROOT / "vm/stream.py", "talk", "50000"))
    lines = [line for line in done.stdout.split("\n") if "libibverbs" in line]
    wrong = [] if not done.returncode and len(lines) == 1 else [f"status {done.returncode}"]
    if report.get("fallbacks") != FALLEN:
        wrong.append(f"reasons: {report.get('fallbacks')}")
    writer.case("libraries that cannot be loaded: software serves, and one line says so",
                wrong and [*wrong, *done.stdout.split("\n")])


# Of a client (client.py): what it shows, the device, and how it ends
CLIENTS = (
    ("a device's stream, close() of all there is, and connect() to nowhere", "carried", {}, 0),
    ("an end while the device's library is at work for the worker thread", "left",
     {"FAKE_CALLS": "100"}, 3),
    ("what a device's stream says of itself", "asked", {}, 0),
    ("octets that the device still has", "queued", {}, 0),
    ("a peer that may be gone", "kept", ROCE, 0),
    ("and while it is under way", "asked_early", {"FAKE_CONNECTED": TIMEWAIT}, 0),
    ("a call that finds out that nobody has answered", "unanswered",
     ROCE | {"FAKE_CONNECTED": TIMEWAIT} | SOON, 0),
    ("a program is executed behind a close()", "executed",
     {"FAKE_LATE": "300", "WARPSOCK_LINGER": "30"}, 0),
    ("the device's library has ended: nobody comes to it", "owed", {"FAKE_FULL": "1"}, 3),
)


def clients(writer, device):
    told = device.folder / "told"
    for name, what, env, want in CLIENTS:
        told.unlink(missing_ok=True)
        try:
            done = device.client(ALL, VERBS | env | {"FAKE_TOLD": str(told)},
                                 [HERE / "client.py", what])
            wrong = [f"status {done.returncode}", *done.stdout.split("\n")] \
                if done.returncode != want else []
        except subprocess.TimeoutExpired:
            wrong = [f"still there after {LIMIT} s"]
        writer.case(name, wrong)


# Of a server: who listens (listen.py), what the device is, what the user wants, and reasons
LISTENERS = (
    *((f"beside: {what}", what, ROCE, reasons) for what, reasons in (
        ("turns", {}), ("plain", {}), ("waits", {}), ("at_the_limit", {}),
        ("keeps", {}),
        ("signals", {}), ("sets", {}), ("duplicates", {}),
        ("numbers", {}), ("interrupted", {}), ("forks_early", {"FORKED": 1}),
        ("forks_late", {"FORKED": 3}), ("port_twice", {}), ("everywhere", {}),
        ("confined", {"SANDBOXED": 1}))),
    *((f"beside: {what}", what, ROCE, {"FORKED": 2}) for what in (
        "forks_for_it", "forks_for_six", "forks_when_it_is_in_a_set", "passes_it",
        "spawns_with_it", "lends_it")),
    ("beside: executes_with_it", "executes_with_it", ROCE, {"FORKED": 1}),
    ("beside: answers", "answers", ROCE, {"FORKED": 7}),
    ("beside: given_away", "given_away", ROCE | {"FAKE_REGIONS": "100000"}, {}),
    ("beside, by the user's wish", "waits", ROCE | VERBS, {"PROVIDER_UNAVAILABLE": 2}),
    ("an iWARP device, which would take the kernel's port", "kernel_alone", {}, {}),
    ("a device elsewhere", "kernel_alone", ROCE | VERBS | {"FAKE_ELSEWHERE": "1"},
     {"PROVIDER_UNAVAILABLE": 2}),
    ("an iWARP device, by the user's wish", "device_alone", VERBS, {}),
    ("its listener in another program", "alone_executes", VERBS,
     {"FORKED": 1, "PROVIDER_UNAVAILABLE": 2}),
    ("its listener after a fork", "alone_forks", VERBS, {"FORKED": 1, "PROVIDER_UNAVAILABLE": 1}),
    ("its listener in a child, when it has served", "alone_forks_late", VERBS, {}),
    *((f"{name}: {what}", what, env, {}) for name, env in (("beside", ROCE), ("alone", VERBS))
      for what in ("lacks", "stirred")),
    ("beside: refused", "refused", ROCE, {"PROVIDER_UNAVAILABLE": 2}),
    # The clients, too, are to have a device
    ("alone: refused", "refused", VERBS, {"PROVIDER_UNAVAILABLE": 5}),
)
# Peers that are gone before they are heard
NO_MATTER = {"PEER_CLOSED", "PEER_NOT_MPA", "LINGER_EXPIRED"}


def listeners(writer, device):
    report = device.folder / "report"
    for name, what, env, want in LISTENERS:
        report.unlink(missing_ok=True)
        done = device.client(AUTO.get(what, ALL), env | {"WARPSOCK_REPORT": str(report)},
                             [HERE / "listen.py", what])
        reasons = json.loads(report.read_text())["fallbacks"] if report.exists() else {}
        reasons = {key: n for key, n in reasons.items() if key not in NO_MATTER}
        wrong = [f"status {done.returncode}"] if done.returncode else []
        if reasons != want:
            wrong.append(f"reasons: {reasons}")
        writer.case(f"listeners: {name}", wrong and [*wrong, *done.stdout.split("\n")])


def main():
    warpsock, library = map(os.path.abspath, sys.argv[1:3])
    if not sys.argv[3:]:
        unshare = ["unshare", "--mount", *([] if os.geteuid() == 0 else ["--map-root-user"])]
        if subprocess.run([*unshare, "mount", "-t", "tmpfs", "none", "/sys/class"],
                          capture_output=True, check=False).returncode:
            print("1..0 # SKIP no mount namespace is to be had")
            return
        os.execvp(unshare[0], [*unshare, sys.executable, __file__, warpsock, library, "inside"])
    subprocess.run(["mount", "-t", "tmpfs", "none", "/sys/class"], check=True)
    os.makedirs("/sys/class/infiniband/made-up0")
    writer = tap.Writer()
    with tempfile.TemporaryDirectory() as folder:
        device = Device(warpsock, library, Path(folder))
        providers(writer, device)
        unloadable(writer, device)
        clients(writer, device)
        listeners(writer, device)
    writer.finish()


main()
