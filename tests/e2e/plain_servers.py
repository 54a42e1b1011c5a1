#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Clients in mode auto, and real servers that know nothing of DDP.

    plain_servers.py WARPSOCK

      client, under warpsock                a plain server
        Request, if a rule names it ----->  an error in its log, or nothing
        reset
        its octets ---------------------->  as ever

The program notices nothing, one Request at most goes to a server, however many connections begin at
once and later, and it costs its time-out at most, once. Without a rule that names it a server sees
nothing of us.
"""
import os
import re
import shutil
import struct
import subprocess
import sys
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
import tap  # noqa: E402
from launch import Stage, differences, free_port  # noqa: E402

LIMIT = 3  # of a probe, in seconds
POSTGRES = max(Path("/usr/lib/postgresql").glob("*/bin"), default=Path("/none"))
# Conversations of one program, one after the other: what is said and what is heard
TALK = """
import socket, sys
port, said, heard = int(sys.argv[1]), *(eval(word) for word in sys.argv[2:4])
for turn in range(3):
    with socket.create_connection(("127.0.0.1", port), timeout=20) as s:
        got = b""
        if heard.startswith(b"welcome"):
            got = s.recv(8, socket.MSG_WAITALL)
        s.sendall(said)
        while len(got) < len(heard):
            data = s.recv(len(heard) - len(got))
            if not data:
                break
            got += data
    print("right" if got == heard else got)
"""
CROWD = 6
# Conversations of one program at once, and then one after the other
MEETING = f"""
import socket, sys, threading
port, said, heard = int(sys.argv[1]), *(eval(word) for word in sys.argv[2:4])
start, right = threading.Barrier({CROWD}), []
def talk():
    with socket.create_connection(("127.0.0.1", port), timeout=60) as s:
        s.sendall(said)
        right.append(s.recv(len(heard), socket.MSG_WAITALL) == heard)
def talk_at_once():
    start.wait()
    talk()
threads = [threading.Thread(target=talk_at_once) for _ in range({CROWD})]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
for _ in range({CROWD}):
    talk()
print(f"{{right.count(True)}} right")
"""
NGINX = """
daemon off; master_process off; user root; pid {dir}/nginx.pid; error_log {dir}/error.log info;
events {{ }}
http {{ access_log {dir}/access.log; server {{ listen 127.0.0.1:{port}; root {dir}; }} }}
"""
# What socat -v says of it, on the way in
SEEN = r"> [^\n]* length=\d+ [^\n]*\nMPA ID Req Frame"
SSHD = """
Port {port}
ListenAddress 127.0.0.1
HostKey {dir}/key
AuthorizedKeysFile {dir}/key.pub
PidFile none
UsePAM no
StrictModes no
PasswordAuthentication no
"""


def talk(said, heard):
    return lambda port: [sys.executable, "-c", TALK, str(port), repr(said), repr(heard)]


def meet(said, heard):
    return lambda port: [sys.executable, "-c", MEETING, str(port), repr(said), repr(heard)]


def socat(target, *options):
    return lambda folder, port: ["socat", "-d", "-d", "-v", *options,
                                 f"TCP-LISTEN:{port},bind=127.0.0.1,reuseaddr,fork", target]


def nginx(folder, port):
    (folder / "nginx.conf").write_text(NGINX.format(dir=folder, port=port))
    (folder / "page").write_text("the page\n")
    return ["nginx", "-p", folder, "-c", folder / "nginx.conf", "-e", folder / "error.log"]


def curl(port):
    url = f"http://127.0.0.1:{port}/page"
    return ["curl", "-sS", "-H", "Connection: close", url, url]


def sshd(folder, port):
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", folder / "key"],
                   check=True, timeout=60)
    (folder / "sshd").write_text(SSHD.format(dir=folder, port=port))
    os.makedirs("/run/sshd", mode=0o755, exist_ok=True)
    return ["/usr/sbin/sshd", "-D", "-e", "-f", folder / "sshd"]


def ssh(port):
    return ["ssh", "-F", "none", "-p", str(port), "-i", "key", "-o", "BatchMode=yes", "-o",
            "UserKnownHostsFile=/dev/null", "-o", "StrictHostKeyChecking=no", "-o",
            "LogLevel=ERROR", "127.0.0.1", "echo let in"]


def postgres(folder, port):
    folder.chmod(0o777)
    subprocess.run([POSTGRES / "initdb", "-D", folder / "data", "-A", "trust", "--no-sync", "-U",
                    "postgres"], check=True, timeout=100, user="postgres", cwd=folder,
                   stdout=subprocess.DEVNULL)
    return ["setpriv", "--reuid", "postgres", "--clear-groups", POSTGRES / "postgres", "-D",
            folder / "data", "-c", "listen_addresses=127.0.0.1", "-p", str(port), "-k", folder]


def pgbench(port):
    """A connection for each transaction, and two before."""
    return ["pgbench", "-C", "-n", "-t", "4", "-h", "127.0.0.1", "-p", str(port), "-U", "postgres",
            "-f", "select.sql", "postgres"]


class Server:
    """How it is started and asked, once and by many; what a Request is to it: our reason, and what
    its log says."""

    def __init__(self, needs, args, client, right, connections, many, reason, log):
        self.needs, self.args, self.client, self.right = needs, args, client, right
        self.connections, self.reason, self.log = connections, reason, log
        # How, what is right, and how many connections
        self.many = many if len(many) == 3 else (meet(*many), f"{2 * CROWD} right\n", 2 * CROWD)


SERVERS = {
    "redis": Server(
        ["redis-server", "redis-benchmark"],
        lambda folder, port: ["redis-server", "--bind", "127.0.0.1", "--port", str(port), "--save",
                              "", "--loglevel", "debug", "--protected-mode", "no"],
        lambda port: ["redis-benchmark", "-h", "127.0.0.1", "-p", str(port), "-c", "5", "-n",
                      "500", "-q", "-t", "set"],
        "SET: ", 6, (b"PING\r\n", b"+PONG\r\n"), "PROBE_TIMEOUT",
        "Reading from client: Connection reset by peer"),
    "memcached": Server(
        ["memcached"],
        lambda folder, port: ["memcached", "-u", "root", "-l", "127.0.0.1", "-p", str(port), "-vv"],
        talk(b"set a 0 0 1\r\nb\r\nget a\r\n", b"STORED\r\nVALUE a 0 1\r\nb\r\nEND\r\n"),
        "right\nright\nright\n", 3, (b"get b\r\n", b"END\r\n"), "PROBE_TIMEOUT",
        r"\n(\d+): Client using the ascii protocol\n(?:(?!\D?\1\D).*\n)*<\1 connection closed"),
    "nginx": Server(["nginx", "curl"], nginx, curl, "the page\nthe page\n", 2,
                    (b"GET /page HTTP/1.0\r\n\r\n", b"HTTP/1.1 200 OK"), "PEER_NOT_MPA",
                    r'"MPA ID Req Frame.*" 400 '),
    "postgres": Server([str(POSTGRES / "postgres"), "pgbench", "setpriv"], postgres, pgbench,
                       "processed: 4/4\n", 5, (struct.pack("!II", 8, 80877103), b"N"),
                       "PEER_CLOSED", "invalid length of startup packet"),
    "sshd": Server(["/usr/sbin/sshd", "ssh", "ssh-keygen"], sshd, ssh, "let in\n", 1,
                   (b"", b"SSH-2.0-"), "PEER_NOT_MPA", "banner exchange: .* invalid format"),
    "an echo server": Server(["socat"], socat("PIPE"), talk(b"hello" * 999, b"hello" * 999),
                             "right\nright\nright\n", 3, (b"hello" * 999, b"hello" * 999),
                             "PEER_NOT_MPA", SEEN),
    "a discard server": Server(["socat"], socat("OPEN:/dev/null", "-u"), talk(b"hello" * 999, b""),
                               "right\nright\nright\n", 3, (b"hello" * 999, b""),
                               "PROBE_TIMEOUT", SEEN),
    # Not so soon that it comes before the Request of a client that is slow
    "a server that speaks first": Server(
        ["socat"], socat("SYSTEM:sleep 0.2; echo welcome; cat"), talk(b"hello", b"welcome\nhello"),
        "right\nright\nright\n", 3, (b"", b"welcome\n"), "PEER_NOT_MPA", SEEN),
    "iperf3": Server(
        ["iperf3"], lambda folder, port: ["iperf3", "-s", "-p", str(port)],
        lambda port: ["iperf3", "-c", "127.0.0.1", "-p", str(port), "-n", "2M"],
        "iperf Done.\n", 2,
        (lambda port: ["iperf3", "-c", "127.0.0.1", "-p", str(port), "-n", "2M", "-P", "5"],
         "iperf Done.\n", 6), "PEER_NOT_MPA", "unable to receive parameters from client"),
}


def listens(port, net="/proc/net"):
    wanted = f":{port:04X}"
    return any(line.split()[1].endswith(wanted) and line.split()[3] == "0A"
               for table in ("tcp", "tcp6")
               for line in Path(net, table).read_text().splitlines()[1:])


def until(condition, limit=30):
    end = time.monotonic() + limit
    while not condition() and time.monotonic() < end:
        time.sleep(0.02)
    return condition()


def log_of(stage):
    """All that it said, wherever."""
    files = [stage.dir / name for name in ("server.out", "server.err", "access.log", "error.log")]
    return "".join(file.read_text(errors="replace") for file in files if file.exists())


class Asked:
    """A server that is up, and a client asks it: how it ended, and how long it took."""

    def __init__(self, warpsock, server):
        self.stage, self.server = Stage(warpsock), server
        self.port = free_port()
        args = [str(word) for word in server.args(self.stage.dir, self.port)]
        self.proc = self.stage.start("server", args, mode=None)
        (self.stage.dir / "select.sql").write_text("SELECT 1;\n")

    def __enter__(self):
        if not until(lambda: listens(self.port) or self.proc.poll() is not None):
            raise RuntimeError(f"the server does not listen: {log_of(self.stage)}")
        return self

    def __exit__(self, *_):
        self.stage.__exit__()

    def client(self, name, args=None, right=None, **kwargs):
        """(what is wrong, seconds)"""
        begin = time.monotonic()
        args, right = args or self.server.client, right or self.server.right
        status = self.stage.run(name, [str(word) for word in args(self.port)],
                                env={"WARPSOCK_PROBE_TIMEOUT": f"{LIMIT}s"}, **kwargs)
        took = time.monotonic() - begin
        said = self.stage.text(name)
        if status == 0 and right in said:
            return [], took
        return [f"status {status}", said[-300:], self.stage.text(name, "err")[-300:]], took

    def shows(self):
        """How often its log says that there was a Request."""
        return len(re.findall(self.server.log, log_of(self.stage)))

    def named(self):
        return [f"auto client * 127.0.0.1:{self.port}"]


def counts(report, **fallbacks):
    return differences(report, {
        "connections": {"software": 0, "kernel": 0, "verbs": 0, "tcp": sum(fallbacks.values())},
        "fallbacks": fallbacks, "errors": 0})


def unknown(asked, server):
    """No rule names it: not an octet of ours, and nothing in its log."""
    problems, _ = asked.client("unknown", mode="auto")
    problems += counts(asked.stage.report("unknown"), PEER_UNKNOWN=server.connections)
    if asked.shows():
        problems.append("its log says that it was asked")
    return problems


def probed(asked, name, plain, check, **how):
    """A rule names it: it sees one Request, and the program nothing."""
    before = asked.shows()
    problems, took = asked.client(name, rules=asked.named(), **how)
    problems += check(asked.stage.report(name))
    if took > plain + LIMIT + 0.9 * LIMIT:
        problems.append(f"{took:.1f} s, and {plain:.1f} without warpsock")
    until(lambda: asked.shows() > before, 10)
    if asked.shows() != before + 1:
        problems += [f"its log says {asked.shows() - before} times what it is said to:",
                     log_of(asked.stage)[-500:]]
    return problems


def by_one(asked, server, plain):
    known = {"PEER_KNOWN_PLAIN": server.connections - 1} if server.connections > 1 else {}
    return probed(asked, "probed", plain,
                  lambda report: counts(report, **{server.reason: 1}, **known))


def by_many(asked, server):
    """Several connections of a program: one Request for all. Who waits for its answer may have
    waited as long as for one of its own, or be spoken to meanwhile."""
    args, right, connections = server.many

    def check(report):
        why = (report or {"fallbacks": {}})["fallbacks"]
        later = why.get("PEER_KNOWN_PLAIN", 0) - (connections - CROWD)
        others = set(why) - {server.reason, "PEER_KNOWN_PLAIN", "PROBE_TIMEOUT", "PEER_NOT_MPA"}
        wrong = others or later < 0 or not why.get(server.reason)
        return counts(report, **why) + ([f"fallbacks {why}"] if wrong or
                                        sum(why.values()) != connections else [])

    problems, plain = asked.client("many-plain", args, right, mode=None)
    return problems or probed(asked, "many", plain, check, args=args, right=right)


def ask(writer, warpsock, name, server):
    with Asked(warpsock, server) as asked:
        problems, plain = asked.client("plain", mode=None)
        writer.case(f"{name}: without warpsock", problems)
        writer.case(f"{name}: nothing is asked without a reason", unknown(asked, server))
        writer.case(f"{name}: one Request, and no error",
                    by_one(asked, server, plain))
        writer.case(f"{name}: one Request for many connections", by_many(asked, server))


def main():
    warpsock, writer = os.path.abspath(sys.argv[1]), tap.Writer()
    for name, server in SERVERS.items():
        lacking = [need for need in server.needs if not shutil.which(need)]
        if lacking:
            writer.skip(name, f"no {' '.join(lacking)} here")
        elif name in ("postgres", "sshd") and os.getuid():
            writer.skip(name, "not root")
        else:
            ask(writer, warpsock, name, server)
    writer.finish()


if __name__ == "__main__":
    main()
