#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What a user sees who types at a terminal: each session is lines typed, and what they say.

    sessions.py WARPSOCK [PART..]
"""
import json
import os
import re
import socket
import subprocess
import sys
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
import tap  # noqa: E402
from launch import Stage, counts_left, free_port  # noqa: E402
import shells  # noqa: E402
from terminal import Terminal  # noqa: E402

PYTHON = sys.executable
# Speaks plainly, and shuts what it has been sent
PLAIN = """
import socket, sys
listener = socket.create_server(("127.0.0.1", int(sys.argv[1])))
print("listens", flush=True)
while True:
    conn = listener.accept()[0]
    conn.recv(1000)
    conn.close()
"""
# Says nothing, and keeps the connection
SILENT = """
import socket, sys
listener = socket.create_server(("127.0.0.1", int(sys.argv[1])), backlog=100)
print("listens", flush=True)
kept = []
while True:
    kept.append(listener.accept()[0])
"""
# So many connections at once, each with an octet there and back
CLIENT = """
import socket, sys
socks = [socket.create_connection(("127.0.0.1", int(sys.argv[1]))) for _ in range(int(sys.argv[2]))]
for sock in socks:
    try:
        sock.sendall(b"x")
        sock.recv(1)
    except OSError:
        pass
"""
ECHO = """
import socket, sys, threading
def serve(conn):
    with conn:
        conn.sendall(conn.recv(1))
listener = socket.create_server(("127.0.0.1", int(sys.argv[1])), backlog=100)
print("listens", flush=True)
while True:
    threading.Thread(target=serve, args=listener.accept()[:1], daemon=True).start()
"""
FIRST = """
import socket, sys
listener = socket.create_server(("127.0.0.1", int(sys.argv[1])))
print("listens", flush=True)
while True:
    with listener.accept()[0] as conn:
        conn.sendall(b"220 a server that speaks first, as of mail\\r\\n")
        conn.recv(1000)
"""
# Its queue is full, so the kernel drops what else would connect
FULL = """
import socket, sys, time
listener = socket.create_server(("127.0.0.1", int(sys.argv[1])), backlog=1)
kept = []
try:
    while len(kept) < 9:
        kept.append(socket.create_connection(listener.getsockname(), timeout=0.2))
except TimeoutError:
    print("listens", flush=True)
time.sleep(60)
"""
# A client that closes its own standard error before it ends, as wget does
CLOSES = CLIENT + "import os; os.close(2)\n"
# What does not wait for its connection, and fails a while later
LATER = """
import select, socket, sys
sock = socket.socket()
sock.setblocking(False)
sock.connect_ex(("127.0.0.1", int(sys.argv[1])))
poll = select.poll()
poll.register(sock, select.POLLOUT)
poll.poll(10000)
try:
    sock.send(b"x")
except OSError as error:
    print("errno", error.errno)
"""

ADDRESS = r"127\.0\.0\.1:"
PID = r"warpsock\[\d+\] "


class Desk:
    """A terminal in which warpsock is a command, and servers beside it."""

    def __init__(self, warpsock):
        self.stage = Stage(warpsock)
        self.env = {"PATH": f"{os.path.dirname(os.path.abspath(warpsock))}:{os.environ['PATH']}",
                    "WARPSOCK_CONFIG": ""}
        self.servers = 0

    def __enter__(self):
        self.stage.__enter__()
        self.terminal = Terminal(self.stage.dir, self.env)
        return self

    def __exit__(self, *_):
        self.terminal.__exit__()
        self.stage.__exit__()

    def script(self, name, text):
        (self.stage.dir / name).write_text(text)
        return f"{PYTHON} {name}"

    def server(self, text, mode=None, **env):
        port = free_port()
        self.servers += 1
        name = f"server{self.servers}"
        self.stage.start(name, [PYTHON, "-c", text, str(port)], mode=mode, env=self.env | env)
        self.stage.wait_text(name, "listens")
        return port


# What is typed, the exit status, what is to be seen, and what is not
TYPED = (
    ("warpsock", 125, r"^warpsock: which command\?\nSee: warpsock help\n$", ""),
    ("warpsock rn", 125, r'^warpsock: there is no command "rn"; did you mean run\?\nSee: warpsock '
     r'help\n$', ""),
    ("warpsock sing", 125, r'^warpsock: there is no command "sing"\nSee: warpsock help\n$', ""),
    ("warpsock --hlp", 125, "^warpsock: there is no option --hlp; did you mean --help\\?\nSee: "
     "warpsock help\n$", ""),
    ("warpsock -V", 125, "^warpsock: there is no option -V\n", ""),
    ("warpsock --help run", 0, r"^usage: warpsock run \[OPTION", ""),
    ("warpsock --version run", 125, '^warpsock: --version has no argument, and got "run"\n$', ""),
    ("warpsock help", 0, r"(?s)^usage: warpsock COMMAND.*\n  run +Run a command.*\n  check ", ""),
    ("warpsock --help 2>&-", 0, r"^usage: warpsock COMMAND", ""),
    ("warpsock help run", 0, r"(?s)^usage: warpsock run \[OPTION\.\.\] \[--\] COMMAND.*\n"
     r"  -m, --mode MODE\n.*examples:\n  warpsock run --all", ""),
    ("warpsock run --help >&2 2>/dev/null", 0, r"^usage: warpsock run", ""),
    ("warpsock explain -h", 0, r"^usage: warpsock explain .*\n       warpsock explain ", ""),
    ("warpsock help rn", 125, r"did you mean run\?", ""),
    ("warpsock help run check", 125, r"^warpsock: help: one command, not 2\n", ""),
    ("warpsock run", 125, r"^warpsock: run: which command\?\nSee: warpsock help run\n$", ""),
    ("warpsock run --vebose -- true", 125, r"there is no option --vebose; did you mean --verbose\?",
     "usage"),
    ("warpsock run --mode on -- echo runs", 125, r"^warpsock: --mode sets what --all does",
     "runs"),
    ("warpsock run -- echo runs", 0, r"^warpsock: there is no rule, so every socket stays on TCP: "
     r"give --all or --use.*\nruns\n$", ""),
    ("warpsock run --all -- echo runs", 0, r"^runs\n$", "warpsock"),
    ("warpsock run -am on -- echo runs", 0, r"^runs\n$", "warpsock"),
    ("warpsock run --all -- nosuchthing", 127, r"^warpsock: nosuchthing: No such file", ""),
    ("warpsock run --all -v -- nosuchthing", 127, r"^warpsock: nosuchthing: No such file", ""),
    ("warpsock check", 125, r"^warpsock: check: which HOST:PORT\?", ""),
    ("warpsock check here", 125, r'expected HOST:PORT or \[ADDRESS\]:PORT, got "here"', ""),
    ("warpsock check ::1:80", 125, r'expected HOST:PORT or \[ADDRESS\]:PORT, got "::1:80"', ""),
    ("warpsock check --timeout soon x:1", 125, r"expected a time from .*, got \"soon\"", ""),
    ("warpsock check 127.0.0.1:1", 1, r"^127\.0\.0\.1:1 cannot be reached: Connection refused\n"
     r"    UNREACHABLE \(108\)", ""),
    ("warpsock check --timeout 0 x:1", 125, "^warpsock: --timeout: expected a time from 1ms to "
     '3600s, got "0"\n$', ""),
    ("warpsock check 127.0.0.1:0", 125, 'expected a port from 1 to 65535, got "0"', ""),
    ("warpsock check 127.0.0.1:65536", 125, 'expected a port from 1 to 65535, got "65536"', ""),
    ("warpsock check 127.0.0.1:nosuch", 125, '^warpsock: no service is called "nosuch", and it is '
     "no port\n$", ""),
    ("warpsock completion", 125, "for which shell", ""),
    ("warpsock completion csh", 125, 'expected bash, zsh or fish, got "csh"', ""),
    ("warpsock bench --help", 0, r"(?s)^usage: warpsock bench .*--json\n", ""),
    ("warpsock bench stream --rouns 1", 125, r"did you mean --rounds\?", ""),
    ("warpsock --version", 0, r"^warpsock \d+\.\d+\.\d+\n$", ""),
)


def typed(writer, desk):
    for line, wanted_status, wanted, unwanted in TYPED:
        seen, status = desk.terminal.type(line)
        good = status == wanted_status and re.search(wanted, seen) and \
            not (unwanted and unwanted in seen)
        writer.case(f"typed: {line}", [] if good else [f"status {status}", repr(seen)])


def case(writer, name, seen, status, wanted, wanted_status=0, unwanted=""):
    good = status == wanted_status and re.search(wanted, seen) and \
        not (unwanted and re.search(unwanted, seen))
    writer.case(name, [] if good else [f"status {status}, wanted {wanted!r}", *seen.splitlines()])


def plain(writer, desk):
    """Nothing of a command was on DDP: the user is told, with the peer and what to do."""
    port, client = desk.server(PLAIN), desk.script("client", CLIENT)
    told = (rf"{PID}warn: all connections of this command stayed on TCP \(1\); the first one, "
            rf"{ADDRESS}{port}: [A-Z_]+: .*\.\n")
    seen, status = desk.terminal.type(f"warpsock run --all -- {client} {port} 1")
    case(writer, "all stayed on TCP", seen, status, rf"^{told}$")
    seen, status = desk.terminal.type(f"warpsock run --all -- {desk.script('closes', CLOSES)} "
                                      f"{port} 1")
    case(writer, "all stayed on TCP, of a program that closes its standard error", seen, status,
         told)
    seen, status = desk.terminal.type(f"warpsock run --all -- sh -c '{client} {port} 1; "
                                      f"{client} {port} 2; true'")
    case(writer, "all stayed on TCP, told once for the processes of a command", seen, status,
         rf"^{PID}warn: all connections of this command stayed on TCP \(3\).*\n$")
    seen, status = desk.terminal.type(f"warpsock run --use 'tcp * * *:*' -- {client} {port} 1")
    case(writer, "what a tcp rule asks for is not told of", seen, status, "^$")
    seen, status = desk.terminal.type(f"WARPSOCK_LOG=off warpsock run --all -- {client} {port} 1")
    case(writer, "nor anything where the log is off", seen, status, "^$")
    echo = desk.server(ECHO, "on")
    seen, status = desk.terminal.type(f"warpsock run --all --use 'ddp client * *:{echo}' -- sh -c "
                                      f"'{client} {port} 1; {client} {echo} 1; true'")
    case(writer, "one of a command's connections was on DDP", seen, status, "^$")


def failing(writer, desk):
    """In mode on a connection fails: peer, code and advice."""
    port, client = desk.server(SILENT), desk.script("client", CLIENT)
    told = rf"{PID}warn: {ADDRESS}{port}: the connection failed in mode on: "
    env = "WARPSOCK_START=300ms"
    seen, status = desk.terminal.type(f"{env} warpsock run --all --mode on -- "
                                      f"{desk.script('later', LATER)} {port}")
    case(writer, "a connection that fails in mode on", seen, status,
         rf"{told}PROBE_TIMEOUT: .* Run the peer under warpsock")
    seen, status = desk.terminal.type("WARPSOCK_START=2s warpsock run --all --mode on -- "
                                      f"curl -sS -m 0.5 http://127.0.0.1:{port}/")
    case(writer, "one that the program gives up", seen, status, f"{told}PROBE_TIMEOUT", 28)
    closes = desk.server(PLAIN)
    seen, status = desk.terminal.type(f"{env} warpsock run --all --mode on -- "
                                      f"{desk.script('later', LATER)} {closes}")
    case(writer, "one whose peer closes it", seen, status,
         rf"{ADDRESS}{closes}: the connection failed in mode on: (PEER_CLOSED|PEER_NOT_MPA)")
    many = desk.script("many", LATER.replace("import select", "import os, select")
                       + "if len(sys.argv) < 3:\n"
                         "    for _ in range(6):\n"
                         "        exec(open('later').read())\n")
    seen, status = desk.terminal.type(f"{env} warpsock run --all --mode on -- {many} {closes}")
    case(writer, "many that fail have one line a second, and the count of the others", seen, status,
         rf"{PID}warn: lines left out, of connections that failed: [1-9]")
    lines = len(re.findall("failed in mode on", seen))
    writer.case("which are not told one by one", [] if lines < 6 else [seen])
    seen, status = desk.terminal.type(f"{env} warpsock run --all --mode on -- sh -c 'for i in 1 2 "
                                      f"3 4 5 6; do {desk.script('later', LATER)} {closes}; done; "
                                      "true'")
    lines = len(re.findall("failed in mode on", seen))
    left = sum(map(int, re.findall("lines left out, of connections that failed: ([0-9]+)", seen)))
    case(writer, "the same of the processes of a command", seen, status, "^", 0)
    writer.case("of which each connection is told or counted", [] if lines < 6 and
                lines + left == 6 else [seen])


def refusing(writer, desk):
    """The same of a server in mode on, whose clients are plain: one that speaks, one that does not.
    """
    for said, reason in ((b"GET / HTTP/1.0\r\n\r\n", "PEER_NOT_MPA"), (b"", "PROBE_TIMEOUT")):
        port = desk.server(ECHO, "on", WARPSOCK_START="300ms")
        with socket.create_connection(("127.0.0.1", port), timeout=20) as sock:
            sock.sendall(said)
            told = (rf"warn: 127\.0\.0\.1:{sock.getsockname()[1]}: the connection failed in mode "
                    rf"on: {reason}: .*\. Run the peer under warpsock")
            try:
                sock.recv(1)
            except ConnectionError:
                pass
        end = time.monotonic() + 20
        while not re.search(told, desk.stage.text(f"server{desk.servers}", "err")) and \
                time.monotonic() < end:
            time.sleep(0.05)
        lines = re.findall("^warpsock.*$", desk.stage.text(f"server{desk.servers}", "err"), re.M)
        writer.case(f"a server in mode on names its plain client: {reason}",
                    [] if len(lines) == 1 and re.search(told, lines[0]) else lines)


def verbose(writer, desk):
    port, client = desk.server(ECHO, "on"), desk.script("client", CLIENT)
    up = (rf"{PID}info: {ADDRESS}{port} is on DDP: as client, provider soft, CRC, "
          r"MPA revision \d\n")
    summary = (r"warpsock: connections: 1 on DDP \(1 by software, 0 by a device\), 0 on TCP, "
               r"0 failed or broken\nwarpsock: bytes over DDP: 1 sent, 1 received\n")
    seen, status = desk.terminal.type(f"warpsock run --all --mode on --verbose -- {client} {port} "
                                      "1")
    case(writer, "--verbose: a line for a connection, and a summary", seen, status,
         f"^{up}{summary}$")
    seen, status = desk.terminal.type(f"warpsock run --all --mode on -- {client} {port} 1")
    case(writer, "without it nothing is told", seen, status, "^$")
    seen, status = desk.terminal.type(f"warpsock run -am on -v -- {client} {port} 5")
    case(writer, "five at once have one line, and the count of the others", seen, status,
         rf"^{up}(?s:.*)lines left out, of connections on DDP: 4\n(?s:.*)5 on DDP")
    seen, status = desk.terminal.type(f"WARPSOCK_CRC=off warpsock run -am on -v -- sh -c "
                                      f"'{client} {port} 1; exit 3'")
    case(writer, "the exit status is the command's", seen, status, "1 on DDP", 3)
    other = desk.server(PLAIN)
    seen, status = desk.terminal.type(f"warpsock run --all -v -- {client} {other} 1")
    case(writer, "a line for a plain connection, and why", seen, status,
         rf"(?s){PID}info: {ADDRESS}{other} is plain TCP: ([A-Z_]+): .*warpsock: connections: "
         r"0 on DDP .*, 1 on TCP.*\nwarpsock:   1 \1: ")
    nobody = free_port()
    seen, status = desk.terminal.type(f"warpsock run -am on -v -- curl -s 127.0.0.1:{nobody}")
    case(writer, "what TCP refuses is no matter of DDP", seen, status, "^warpsock: connections: 0",
         7, "warn")
    seen, status = desk.terminal.type("warpsock run --all -v -- true")
    case(writer, "no connection at all", seen, status,
         r"^warpsock: connections: 0 on DDP .*, 0 on TCP, 0 failed or broken\n$")


def unread(writer, desk):
    """A standard error that nobody reads: closed at its other end, or full."""
    argv = [sys.argv[1], "run", "--all", "--verbose", "--report", "-", "--", "sh", "-c", "exit 3"]
    for name in "broken", "full":
        read, write = os.pipe()
        if name == "broken":
            os.close(read)
        else:
            os.set_blocking(write, False)
            while True:
                try:
                    os.write(write, bytes(4096))
                except BlockingIOError:
                    break
            os.set_blocking(write, True)
        began = time.monotonic()
        done = subprocess.run(argv, stderr=write, stdout=subprocess.PIPE, text=True, timeout=20,
                              check=False)
        took = time.monotonic() - began
        writer.case(f"a {name} standard error changes nothing of a command's end",
                    [] if done.returncode == 3 and took < 8 and json.loads(done.stdout)
                    else [f"status {done.returncode} after {took:.1f} s", done.stdout])
    read, write = os.pipe()
    os.close(read)
    done = subprocess.run(argv, stdout=write, stderr=subprocess.PIPE, text=True, timeout=20,
                          check=False)
    writer.case("a report that cannot be written is told of",
                [] if done.returncode == 3 and "warpsock: the report: Broken pipe" in done.stderr
                else [f"status {done.returncode}", done.stderr])


def unwritten(writer, _desk):
    """No file may be written (LimitFSIZE=0 of systemd)."""
    connects = ("import socket; l = socket.create_server(('127.0.0.1', 0)); "
                "s = socket.create_connection(l.getsockname()); c = l.accept()[0]; "
                "s.sendall(b'all'); c.close() if c.recv(3) == b'all' else 1/0; print('over')")
    for report in (), ("--report", "/dev/shm/warpsock-sessions-none.json"), ("--verbose",):
        argv = ["prlimit", "--fsize=0:0", sys.argv[1], "run", "--all", "--mode", "on", *report,
                "--", sys.executable, "-c", connects]
        done = subprocess.run(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                              timeout=20, check=False)
        told = "File too large" in done.stderr if "--report" in report else \
            (done.returncode, done.stdout) == (0, "over\n")
        writer.case(f"a command that may write no file, run {' '.join(report)}",
                    [] if told else [f"status {done.returncode}", done.stdout, done.stderr])


def signals(writer, desk):
    """The command is a child, and nobody notices."""
    terminal = desk.terminal
    # exec: a shell that has begun a child as ^C comes would go on with it
    terminal.press("warpsock run --all -v -- sh -c 'echo runs; exec sleep 60'\n")
    terminal.see("runs\n")
    terminal.press("\x03")
    seen, status = terminal.wait_prompt()
    case(writer, "^C ends a command that is watched", seen, status, "warpsock: connections: 0", 130)
    terminal.press("warpsock run --all -v -- sh -c 'echo runs; sleep 60; echo over'\n")
    terminal.see("runs\n")
    terminal.press("\x1a")
    seen, status = terminal.wait_prompt()
    case(writer, "^Z stops it", seen, status, "Stopped", 148)
    seen, status = terminal.type("bg %1; kill -TERM %1; wait %1")
    case(writer, "and a signal is passed on to it", seen, status, "warpsock: connections: 0", 143,
         "\nover\n")
    seen, status = terminal.type("warpsock run --all -v -- sh -c 'kill -KILL $$'")
    case(writer, "it ends by the signal that ended the command", seen, status, "Killed", 137)


def reports(writer, desk):
    zero = '{"connections": {"software": 0, "kernel": 0, "verbs": 0, "tcp": 0}, "fallbacks": {}'
    seen, status = desk.terminal.type("warpsock run --all --report - -- echo runs")
    case(writer, "--report - is standard output", seen, status, r"^runs\n" + re.escape(zero))
    seen, status = desk.terminal.type("warpsock run --all --report r -- true && cat r; rm r")
    case(writer, "a report of no connection", seen, status, "^" + re.escape(zero))
    seen, status = desk.terminal.type("warpsock run --all --report r -- sh -c 'kill -9 $$'; "
                                      "cat r; rm r")
    case(writer, "a report of a command that is killed", seen, status, re.escape(zero))
    port = desk.server(PLAIN)
    killed = desk.script("killed", CLIENT + "import os; os.kill(os.getpid(), 9)\n")
    seen, status = desk.terminal.type(f"warpsock run --all -v --report r -- {killed} {port} 2; "
                                      "cat r; rm r")
    case(writer, "what a killed command has counted is in the summary", seen, status,
         r"connections: 0 on DDP .*, 2 on TCP")
    case(writer, "and in the report", seen, status, '"tcp": 2}')
    seen, status = desk.terminal.type(f"warpsock run --all --report r -- sh -c '{killed} {port} 2; "
                                      "true'; cat r; rm r")
    case(writer, "what a killed process has counted another one adds", seen, status, '"tcp": 2}')
    seen, status = desk.terminal.type("mkfifo f; warpsock run --all --report f -- echo runs")
    case(writer, "no report takes the place of what is no regular file, as /dev/null", seen, status,
         r"^warpsock: .*/f: Not a regular file; --report - is standard output\n$", 125)
    holder = desk.script("holder", "import fcntl, time\nfile = open('held', 'w')\n"
                         "fcntl.flock(file, fcntl.LOCK_EX)\nprint('held', flush=True)\n"
                         "time.sleep(8)\n")
    began = time.monotonic()
    seen, status = desk.terminal.type("touch held; warpsock run --all --report held -- sh -c "
                                      f"'{holder} & sleep 0.5; exit 3'")
    took = time.monotonic() - began
    case(writer, "a report that another process has locked is waited for a while", seen, status,
         "the report cannot be written to .*/held: Resource temporarily unavailable", 3)
    writer.case("and no longer", [] if took < 15 else [f"{took:.0f} s"])
    port, client = desk.server(ECHO, "on"), desk.script("client", CLIENT)
    seen, status = desk.terminal.type(f"warpsock run -am on --report - -- {client} {port} 2")
    found = json.loads(seen) if seen.startswith("{") else {}
    writer.case("--report - of two connections", [] if found.get("connections", {}).get(
        "software") == 2 and not status else [seen])
    other = desk.server(PLAIN)
    seen, status = desk.terminal.type(f"warpsock run --all --report - -- {client} {other} 1")
    line = seen.splitlines()[-1] if seen else ""
    found = json.loads(line) if line.startswith("{") else {}
    first = found.get("first", {})
    writer.case("the first peer that was plain", [] if first.get("why") and
                first.get("peer") == f"127.0.0.1:{other}" else [seen])
    writer.case("no file of counts is left", counts_left(os.getuid()))
    ghost = subprocess.Popen(["true"])
    ghost.wait()
    path = Path(f"/dev/shm/warpsock-counts-{os.getuid()}-{ghost.pid}")
    path.touch()
    desk.terminal.type("warpsock run --all -- true")
    writer.case("but what a killed command left is removed", [f"{path} is there"]
                if path.exists() else [])


def checks(writer, desk):
    port = desk.server(ECHO, "on")
    seen, status = desk.terminal.type(f"warpsock check localhost:{port}")
    case(writer, "check: a server that speaks DDP", seen, status,
         rf"^localhost:{port} speaks DDP\n    MPA revision 2, CRC on, markers off\n    features: "
         r".*user messages, one-sided operations\n    provider soft, ring 512 KiB\n    start-up "
         r"took [\d.]+ ms, round trip of TCP [\d.]+ ms\n$")
    seen, status = desk.terminal.type(f"WARPSOCK_CRC=off warpsock run -am on -- warpsock check "
                                      f"127.0.0.1:{port}")
    case(writer, "check: under another warpsock", seen, status, "speaks DDP")
    six = desk.server(ECHO.replace('("127.0.0.1", int(sys.argv[1]))',
                                   '("::1", int(sys.argv[1])), family=socket.AF_INET6'), "on")
    seen, status = desk.terminal.type(f"warpsock check [::1]:{six}")
    case(writer, "check: IPv6", seen, status, rf"^\[::1\]:{six} speaks DDP\n")
    silent, closes = desk.server(SILENT), desk.server(PLAIN)
    begin = time.monotonic()
    seen, status = desk.terminal.type(f"warpsock check --timeout 500ms 127.0.0.1:{silent}")
    took = time.monotonic() - begin
    case(writer, "check: a server that says nothing", seen, status,
         rf"^127.0.0.1:{silent} does not speak DDP\n    PROBE_TIMEOUT \(101\): .*\n    Run ", 1)
    writer.case("within the time that it is given", [] if 0.4 < took < 10 else [f"{took} s"])
    seen, status = desk.terminal.type(f"warpsock check 127.0.0.1:{closes}")
    case(writer, "check: a plain server", seen, status,
         r"does not speak DDP\n    (PEER_CLOSED|PEER_NOT_MPA) \(10\d\): ", 1)
    seen, status = desk.terminal.type(f"warpsock check 127.0.0.1:{desk.server(FIRST)}")
    case(writer, "check: a plain server that speaks first", seen, status,
         r"does not speak DDP\n    PEER_NOT_MPA \(100\): ", 1)
    full, begin = desk.server(FULL), time.monotonic()
    seen, status = desk.terminal.type(f"warpsock check --timeout 1s 127.0.0.1:{full}")
    took = time.monotonic() - begin
    case(writer, "check: a host that drops what would connect", seen, status,
         rf"^127.0.0.1:{full} cannot be reached: Connection timed out\n    UNREACHABLE \(108\)", 1)
    writer.case("which waits no longer than it is given", [] if 0.9 < took < 2 else [f"{took} s"])


COMPLETED = (
    ("warpsock ", {"run", "check", "rules", "explain", "options", "doctor", "bench",
                   "completion", "help"}),
    ("warpsock e", {"explain"}),
    ("warpsock --v", {"--version"}),
    ("warpsock run --mo", {"--mode"}),
    ("warpsock run --mode ", {"on", "auto", "spin"}),
    ("warpsock run -m ", {"on", "auto", "spin"}),
    ("warpsock run --profile l", {"latency"}),
    ("warpsock check --ti", {"--timeout"}),
    ("warpsock help co", {"completion"}),
    ("warpsock explain PROBE", {"PROBE_TIMEOUT"}),
    ("warpsock options WARPSOCK_SP", {"WARPSOCK_SPIN"}),
    ("warpsock bench rdma-", {"rdma-write", "rdma-read"}),
    ("warpsock doctor onlyprog", {"onlyprogram"}),
    ("warpsock run onlyprog", {"onlyprogram"}),
    ("warpsock run --mode on onlyprog", {"onlyprogram"}),
    ("warpsock run --all -- onlyprog", {"onlyprogram"}),
)
# Behind a program its own completion; bash has that of a package that need not be there
BEHIND = {"zsh": ("ls --col", "--color"), "fish": ("printf --kno", "--known")}


def completions(writer, desk):
    env = dict(os.environ, **desk.env, LC_ALL="C")
    env["PATH"] += f":{desk.stage.dir}/bin"
    (desk.stage.dir / "bin").mkdir()
    (desk.stage.dir / "bin/onlyprogram").symlink_to("/bin/true")
    for shell in shells.SHELLS:
        wrong = shells.write(shell, desk.stage.dir, env)
        writer.case(f"{shell} can read its completion", [wrong] if wrong else [])
        for line, wanted in COMPLETED:
            got, said = shells.complete(shell, desk.stage.dir, env, line)
            got -= {"--version", "--help"} - wanted
            writer.case(f"{shell} completes {line!r}", [] if got == wanted else [str(got), said])
    for shell, (word, wanted) in BEHIND.items():
        for line in f"warpsock run -- {word}", f"warpsock run --mode on {word}":
            got, said = shells.complete(shell, desk.stage.dir, env, line)
            writer.case(f"{shell} completes {line!r}", [] if got == {wanted} else [str(got), said])
        line = f"warpsock run {word.split()[0]} --provid"
        got, said = shells.complete(shell, desk.stage.dir, env, line)
        writer.case(f"{shell} has no option of warpsock's for {line!r}", [str(got), said] if got
                    else [])


def main():
    writer = tap.Writer()
    for part in (typed, plain, failing, refusing, verbose, unread, unwritten, signals,
                 reports, checks, completions):
        if len(sys.argv) > 2 and part.__name__ not in sys.argv[2:]:
            continue
        with Desk(sys.argv[1]) as desk:
            part(writer, desk)
    writer.finish()


if __name__ == "__main__":
    main()
