#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Two hosts of one network, both under `warpsock run --all`, and not one rule: who is asked beside
the connection, who answers, and what the network may do to that.

    ask.py WARPSOCK

    near.py has the two hosts, and what lies between them. programs/ask.py are both ends.
"""
import os
import signal
import socket
import struct
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import far
from launch import Stage
from near import (DELAY, DROP, FLOOD, FORGE, INTERNET, LOSE_SYN, NEAR, ON_LINK, PASS, PORT, THERE,
                  Near)

import tap  # noqa: E402  (found by far.py)

ENDS = ["/usr/bin/python3", str(Path(__file__).resolve().parent / "programs" / "ask.py")]
LIMIT = 30
# Of DDP_INFO
DDP, UNKNOWN, KNOWN_PLAIN, ASK_NO, ASK_SILENT, ASK_WRONG = "0", "4", "5", "109", "110", "111"
HOST = THERE[0]


class Hosts:
    """Programs at both ends; @how: what becomes of packets between them."""

    def __init__(self, warpsock, near, how=PASS):
        self.stage, self.near, self.between = Stage(warpsock), near, near.between
        self.clients = 0
        self.between.begin(how)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for proc in self.stage.running:
            proc.send_signal(signal.SIGCONT)
        self.stage.__exit__()

    def serve(self, name, *listeners, mode="auto", **kwargs):
        enter, user = self.near.enter, kwargs.pop("user", None)

        def begin():
            enter()
            if user is not None:
                os.setgroups([])
                os.setuid(user)
        proc = self.stage.start(name, [*ENDS, "serve", *(str(word) for word in listeners)],
                                mode=mode, preexec_fn=begin, stdin=subprocess.PIPE, text=True,
                                **kwargs)
        self.stage.wait_text(name, "listens", LIMIT)
        return proc

    def tell(self, name, proc, command):
        """To a server; it has done so when this returns."""
        before = self.stage.text(name).count("done")
        proc.stdin.write(command + "\n")
        proc.stdin.flush()
        end = time.monotonic() + LIMIT
        while self.stage.text(name).count("done") == before:
            if time.monotonic() > end:
                raise RuntimeError(f"{name}: {command}: {self.stage.text(name, 'err')}")
            time.sleep(0.01)

    def client(self, mode="auto", **kwargs):
        return Client(self, mode, **kwargs)


class Client:
    def __init__(self, hosts, mode, **kwargs):
        hosts.clients += 1
        self.stage, self.name = hosts.stage, f"client{hosts.clients}"
        # A peer that is known to speak DDP may be slow with its Reply on a busy machine
        kwargs["env"] = {"WARPSOCK_PROBE_TIMEOUT": "20s", **kwargs.get("env", {})}
        self.proc = self.stage.start(self.name, [*ENDS, "connect"], mode=mode, text=True,
                                     stdin=subprocess.PIPE, **kwargs)

    def send(self, line, answers=1):
        before = len(self.stage.text(self.name).splitlines())
        self.proc.stdin.write(line + "\n")
        self.proc.stdin.flush()
        end = time.monotonic() + LIMIT
        while len(lines := self.stage.text(self.name).splitlines()) < before + answers:
            if time.monotonic() > end:
                raise RuntimeError(f"{line}: {self.stage.text(self.name, 'err')[-500:]}")
            time.sleep(0.002)
        return lines[before:]

    def connect(self, port, host=HOST, how=""):
        """Its reason."""
        return self.send(f"{host} {port} {how}")[0].split()[0]

    def settled(self, port, wanted, host=HOST, tries=60):
        """Its reason, at last: an answer may be late on a busy machine, and counts then."""
        for _ in range(tries):
            got = self.connect(port, host)
            if got == wanted:
                break
            time.sleep(0.05)
        return got


def expect(what, got, *wanted):
    return [] if got in wanted else [f"{what}: {got}, not {' or '.join(map(str, wanted))}"]


# --- it works -----------------------------------------------------------------------------------


def everywhere(warpsock, near):
    """Each family, each way to wait, addresses of each kind: DDP with no rule, asked once."""
    wrong = []
    with Hosts(warpsock, near) as hosts:
        hosts.serve("server", "::", 7000)
        hosts.serve("exact", HOST, 7001, THERE[1], 7002)
        for host, port, kind in ((HOST, 7000, ""), (THERE[1], 7000, ""), (ON_LINK[1], 7000, ""),
                                 (HOST, 7001, ""), (THERE[1], 7002, ""), (HOST, 7000, "poll"),
                                 (HOST, 7000, "epoll"), (f"::ffff:{HOST}", 7000, "")):
            hosts.between.begin(PASS)
            client = hosts.client()
            what = f"{host} {port} {kind}"
            first = client.connect(port, host, kind)
            wrong += expect(what, first, DDP, ASK_SILENT)
            wrong += expect(what + " at last", client.settled(port, DDP, host), DDP)
            wrong += expect(what + " once more", client.connect(port, host), DDP)
            wrong += expect(what + ": questions", hosts.between["questions"], 1)
            wrong += expect(what + ": others", hosts.between["others"], 0)
    return wrong


def many_at_once(warpsock, near):
    """Several connections that begin at once: one question, and all are on DDP when it is yes in
    time."""
    with Hosts(warpsock, near) as hosts:
        hosts.serve("server", "::", 7000)
        for _ in range(5):
            hosts.between.begin(PASS)
            said = [line.split()[0] for line in hosts.client().send(f"{HOST} 7000 8", 8)]
            wrong = expect("questions", hosts.between["questions"], 1)
            if set(said) - {DDP, ASK_SILENT}:
                return wrong + [f"said {said}"]
            if set(said) == {DDP} or wrong:
                return wrong
    return [f"never all of them: {said}"]


def by_port(warpsock, near):
    """Yes is said of one port, no of another, and no of one that does not listen."""
    with Hosts(warpsock, near) as hosts:
        server = hosts.serve("server", "0.0.0.0", 7000, HOST, 7001)
        hosts.serve("plain", "0.0.0.0", 7002, mode=None)
        # At its port this host has a listener for DDP, and is not the one that is asked
        here = hosts.stage.start("here", [*ENDS, "serve", "0.0.0.0", "7002"], mode="auto",
                                 stdin=subprocess.PIPE)
        hosts.stage.wait_text("here", "listens", LIMIT)
        client = hosts.client()
        wrong = expect("plain", client.settled(7002, ASK_NO), ASK_NO)
        wrong += expect("DDP", client.settled(7000, DDP), DDP)
        wrong += expect("of another address", client.settled(7000, DDP, ON_LINK[1]), DDP)
        asked = hosts.between["questions"]
        wrong += expect("plain, again", client.connect(7002), ASK_NO)
        wrong += expect("DDP, again", client.connect(7000), DDP)
        wrong += expect("questions to a peer that is known", hosts.between["questions"] - asked, 0)
        hosts.tell("server", server, "close 7001")
        hosts.serve("plain-too", "0.0.0.0", 7001, mode=None)
        wrong += expect("a listener that is gone", hosts.client().settled(7001, ASK_NO), ASK_NO)
        here.stdin.close()
    return wrong


def in_children(warpsock, near):
    """What one of a family of processes knows, the others know, and each has answers of its own."""
    with Hosts(warpsock, near) as hosts:
        hosts.serve("server", "::", 7000, "::", 7001)
        client = hosts.client()
        wrong = expect("parent", client.settled(7000, DDP), DDP)
        asked = hosts.between["questions"]
        wrong += expect("child", client.send(f"fork {HOST} 7000")[0].split()[0], DDP)
        wrong += expect("questions", hosts.between["questions"] - asked, 0)
        said = [client.send(f"fork {HOST} 7001")[0].split()[0] for _ in range(10)]
        wrong += expect("a child that asks", said[-1], DDP)
        wrong += expect("parent, of what the child has found", client.connect(7001), DDP)
    return wrong


# --- rules and options --------------------------------------------------------------------------


def rules(warpsock, near):
    wrong = []
    with Hosts(warpsock, near) as hosts:
        hosts.serve("server", "0.0.0.0", 7000)
        hosts.serve("untold", "0.0.0.0", 7001, rules=["auto server * *:7001 ask never"])
        plain, never = "auto client * *:*", "auto client * *:* ask never"
        always = "auto client * *:* ask always"
        named = "auto client * {}:* ask always"
        for what, rule, port, host, wanted, asks in (
                ("not the open Internet", plain, 7000, INTERNET, UNKNOWN, 0),
                ("but where a rule says so", always, 7000, INTERNET, DDP, 1),
                ("also one that names it", named.format(INTERNET), 7000, INTERNET, DDP, 1),
                ("a rule names it, and nobody asks", f"auto client * {INTERNET}:*", 7000, INTERNET,
                 DDP, 0),
                ("a rule forbids to ask", never, 7000, HOST, UNKNOWN, 0),
                ("a rule forbids to be asked", plain, 7001, HOST, ASK_NO, 1),
                ("this host's own address", plain, 7009, NEAR[0], UNKNOWN, 0)):
            hosts.between.begin(PASS)
            own = hosts.stage.start("own", [*ENDS, "serve", NEAR[0], "7009"], mode=None,
                                    stdin=subprocess.PIPE) if port == 7009 else None
            if own:
                hosts.stage.wait_text("own", "listens", LIMIT)
            client = hosts.client(rules=[rule])
            wrong += expect(what, client.settled(port, wanted, host), wanted)
            wrong += expect(what + ": questions", hosts.between["questions"], asks)
    return wrong


def options(warpsock, near):
    wrong = []
    for what, at_server, at_client, wanted, asks in (
            ("nobody answers", "0", str(PORT), ASK_SILENT, 1),
            ("nobody asks", str(PORT), "0", UNKNOWN, 0),
            ("at another port", "4711", "4711", DDP, 0)):
        with Hosts(warpsock, near) as hosts:
            hosts.serve("server", "0.0.0.0", 7000, env={"WARPSOCK_ASK": at_server})
            client = hosts.client(env={"WARPSOCK_ASK": at_client})
            wrong += expect(what, client.settled(7000, wanted), wanted)
            wrong += expect(what + ": questions", hosts.between["questions"], asks)
    return wrong


# --- who answers --------------------------------------------------------------------------------


def next_in_time(hosts, port, wanted, limit=LIMIT):
    """Of clients that begin with nothing, one each second."""
    end = time.monotonic() + limit
    while True:
        got = hosts.client().connect(port)
        if got == wanted or time.monotonic() > end:
            return got
        time.sleep(0.2)


def owner_goes(warpsock, near):
    """Another process takes over when the one that answers is killed, executes another program, or
    confines itself; and its own listeners are answered for by that one, if it still has them."""
    wrong = []
    for what, mine in (("killed", ASK_NO), ("exec", ASK_NO), ("filter", DDP), ("close", ASK_NO)):
        with Hosts(warpsock, near) as hosts:
            first = hosts.serve("first", "0.0.0.0", 7000)
            time.sleep(0.3)  # it has the port
            hosts.serve("second", "0.0.0.0", 7001)
            wrong += expect(what + ": before", next_in_time(hosts, 7001, DDP), DDP)
            if what == "killed":
                first.kill()
                first.wait()
            elif what == "exec":
                first.stdin.write("exec\n")
                first.stdin.flush()
            else:
                hosts.tell("first", first, "close 7000" if what == "close" else what)
            wrong += expect(what + ": after", next_in_time(hosts, 7001, DDP), DDP)
            if mine == DDP:
                wrong += expect(what + ": its own", next_in_time(hosts, 7000, DDP), DDP)
    return wrong


def owner_stops(warpsock, near):
    """Who is stopped keeps the port: silence, until it goes on, and its late yes counts."""
    with Hosts(warpsock, near) as hosts:
        first = hosts.serve("first", "0.0.0.0", 7000)
        time.sleep(0.3)
        hosts.serve("second", "0.0.0.0", 7001)
        wrong = expect("before", next_in_time(hosts, 7001, DDP), DDP)
        first.send_signal(signal.SIGSTOP)
        client = hosts.client()
        wrong += expect("stopped", client.connect(7001), ASK_SILENT)
        wrong += expect("stopped, again", client.connect(7001), ASK_SILENT)
        wrong += expect("questions meanwhile", hosts.between["questions"] > 0, True)
        first.send_signal(signal.SIGCONT)
        wrong += expect("goes on", client.settled(7001, DDP), DDP)
    return wrong


def daemon(warpsock, near):
    """A child goes on with the listeners, and answers for them."""
    with Hosts(warpsock, near) as hosts:
        server = hosts.serve("server", "0.0.0.0", 7000)
        wrong = expect("before", next_in_time(hosts, 7000, DDP), DDP)
        hosts.tell("server", server, "daemon")
        wrong += expect("the parent", hosts.stage.end(server), 0)
        wrong += expect("the child", next_in_time(hosts, 7000, DDP), DDP)
    return wrong


def users(warpsock, near):
    """The listeners of each user are answered for, whoever has the port."""
    if os.getuid():
        return None
    wrong = []
    for owner, other in ((0, 65534), (65534, 0)):
        with Hosts(warpsock, near) as hosts:
            hosts.stage.dir.chmod(0o777)
            hosts.serve("first", "0.0.0.0", 7000, user=owner)
            time.sleep(0.3)
            hosts.serve("second", "0.0.0.0", 7001, user=other)
            wrong += expect(f"{owner} for itself", next_in_time(hosts, 7000, DDP), DDP)
            wrong += expect(f"{owner} for {other}", next_in_time(hosts, 7001, DDP), DDP)
    return wrong


# --- what the network does ----------------------------------------------------------------------


def median(values):
    return sorted(values)[len(values) // 2]


def first_times(hosts, port, mode, times=5):
    """How long the first connect() of a process takes, and its reason."""
    said = [hosts.client(mode=mode).send(f"{HOST} {port}")[0].split() for _ in range(times)]
    return median([float(words[1]) for words in said]), {words[0] for words in said}


def added(warpsock, near, writer):
    """What the question adds to the first connect() of a process, by what becomes of it."""
    print("# what the question adds to the first connect(): median, and reasons")
    for what, how, mode, reasons, most in (
            ("yes", PASS, "auto", {DDP, ASK_SILENT}, 0.5),
            ("no", PASS, "no", {ASK_NO, ASK_SILENT}, 0.5),
            ("refused: nobody is there", PASS, None, {ASK_SILENT}, 0.5),
            ("dropped", DROP, "auto", {ASK_SILENT}, 0.5),
            ("30 ms late", DELAY, "auto", {DDP, ASK_SILENT}, 0.5),
            ("a stranger answers", FORGE, "auto", {DDP, ASK_SILENT}, 0.5),
            ("a flood of strangers' answers", FLOOD, "auto", {DDP, ASK_SILENT}, 2)):
        with Hosts(warpsock, near, how) as hosts:
            hosts.serve("server", "0.0.0.0", 7000, mode=None if mode in (None, "no") else mode)
            if mode == "no":
                hosts.serve("another", "0.0.0.0", 7001)
            time.sleep(0.3)
            without, _ = first_times(hosts, 7000, None)
            took, said = first_times(hosts, 7000, "auto")
            print(f"# {what}: {(took - without) * 1000:.1f} ms ({without * 1000:.1f} without), "
                  f"{' '.join(sorted(said))}")
            wrong = [f"{took - without} s"] if took - without > most else []
            wrong += [f"said {said}"] if said - reasons else []
            writer.case(f"time that is added: {what}", wrong)


def dropped(warpsock, near):
    """Silence is remembered of the host: no question more, and no time."""
    with Hosts(warpsock, near, DROP) as hosts:
        hosts.serve("server", "0.0.0.0", 7000, "0.0.0.0", 7001)
        client = hosts.client()
        wrong = expect("first", client.connect(7000), ASK_SILENT)
        wrong += expect("second", client.connect(7000), ASK_SILENT)
        wrong += expect("another port", client.connect(7001), ASK_SILENT)
        wrong += expect("questions", hosts.between["questions"], 1)
        wrong += expect("Requests", hosts.between["requests"], 0)
    return wrong


def forged(warpsock, near):
    """Answers with another nonce, from another address or port, of another length or version, and
    the question itself: none is believed."""
    with Hosts(warpsock, near, FORGE) as hosts:
        hosts.serve("server", "0.0.0.0", 7000, mode=None)
        client = hosts.client()
        wrong = expect("first", client.connect(7000), ASK_SILENT)
        time.sleep(0.2)
        wrong += expect("second", client.connect(7000), ASK_SILENT)
        wrong += expect("Requests", hosts.between["requests"], 0)
        hosts.between.begin(FLOOD)
        hosts.serve("DDP", "0.0.0.0", 7001)
        time.sleep(0.3)
        wrong += expect("among very many the right one", next_in_time(hosts, 7001, DDP), DDP)
    return wrong


def late(warpsock, near):
    with Hosts(warpsock, near, DELAY) as hosts:
        hosts.serve("server", "0.0.0.0", 7000)
        time.sleep(0.3)
        # On a busy machine a round trip may take as long
        for _ in range(20):
            hosts.between.begin(DELAY)
            client = hosts.client()
            first = client.connect(7000)
            if first == ASK_SILENT:
                break
        wrong = expect("first", first, ASK_SILENT)
        wrong += expect("then", client.settled(7000, DDP), DDP)
        wrong += expect("questions", hosts.between["questions"], 1)
    return wrong


def lost(warpsock, near):
    """The SYN is lost, and the question with it: it goes again."""
    with Hosts(warpsock, near) as hosts:
        hosts.serve("server", "0.0.0.0", 7000)
        wrong = expect("before", next_in_time(hosts, 7000, DDP), DDP)
        hosts.between.begin(LOSE_SYN)
        got = hosts.client().settled(7000, DDP)
        wrong += expect("SYNs", hosts.between["syns"] > 1, True)
        wrong += expect("questions", hosts.between["questions"], 2)
        return wrong + expect("at last", got, DDP)


def nft(near, rule):
    near.run_there("nft", rule)


def has_nftables(near):
    return not subprocess.run(["nft", "add table inet ask; delete table inet ask"], check=False,
                              preexec_fn=near.enter, capture_output=True, timeout=60).returncode


def filtered(verdict, warpsock, near):
    with Hosts(warpsock, near) as hosts:
        nft(near, "add table inet ask;"
                  "add chain inet ask in { type filter hook input priority 0; };"
                  f"add rule inet ask in udp dport {PORT} {verdict}")
        try:
            hosts.serve("server", "0.0.0.0", 7000)
            time.sleep(0.3)
            client = hosts.client()
            return expect("first", client.connect(7000), ASK_SILENT) + \
                expect("second", client.connect(7000), ASK_SILENT)
        finally:
            nft(near, "delete table inet ask")


def forwarded(warpsock, near):
    """The host says yes for its own listener, and the port leads elsewhere: one connection is lost,
    and the program notices nothing."""
    with Hosts(warpsock, near) as hosts:
        nft(near, "add table ip ask;"
                  "add chain ip ask in { type nat hook prerouting priority -100; };"
                  "add rule ip ask in tcp dport 7000 redirect to :7001")
        try:
            hosts.serve("server", "0.0.0.0", 7000)
            hosts.serve("plain", "0.0.0.0", 7001, mode=None)
            time.sleep(0.3)
            for kind in ("", "epoll"):
                client = hosts.client()
                for _ in range(60):
                    got = client.connect(7000, how=kind)
                    if got != ASK_SILENT:
                        break
                    time.sleep(0.1)
                wrong = expect("first", got, ASK_WRONG) + \
                    expect("second", client.connect(7000), KNOWN_PLAIN)
                if wrong:
                    return wrong
            return []
        finally:
            nft(near, "delete table ip ask")


# --- strangers who ask --------------------------------------------------------------------------

QUESTION = b"WASK" + struct.pack("!BBHQ", 1, 1, 7000, 0x0123456789abcdef)
YES = QUESTION[:5] + b"\2" + QUESTION[6:]


class Stranger:
    """A socket of UDP on this host."""

    def __init__(self, host=HOST):
        six = ":" in host
        self.sock = socket.socket(socket.AF_INET6 if six else socket.AF_INET, socket.SOCK_DGRAM)
        self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1)
        self.sock.settimeout(1)
        self.to = (host, PORT)

    def ask(self, octets):
        self.sock.sendto(octets, self.to)

    def hear(self):
        try:
            return self.sock.recvfrom(1000)
        except (TimeoutError, ConnectionRefusedError):
            return None, None

    def said(self):
        """How many answers there are; the last one is a second ago."""
        number = 0
        while self.hear()[0]:
            number += 1
        return number


def strangers(warpsock, near):
    wrong = []
    with Hosts(warpsock, near) as hosts:
        hosts.serve("server", "::", 7000)
        time.sleep(0.3)
        for host in (HOST, ON_LINK[1], INTERNET, THERE[1]):
            stranger = Stranger(host)
            stranger.ask(QUESTION)
            got, source = stranger.hear()
            wrong += expect(f"{host}: answer", got, YES)
            wrong += expect(f"{host}: source", source and source[:2], (host, PORT))
        stranger = Stranger()
        for octets in (b"", b"W", QUESTION[:-1], QUESTION + b"\0", QUESTION * 50, b"\0" * 16,
                       b"wASK" + QUESTION[4:], QUESTION[:4] + b"\2" + QUESTION[5:],
                       YES, QUESTION[:5] + b"\3" + QUESTION[6:],
                       QUESTION[:5] + b"\0" + QUESTION[6:], QUESTION[:6] + b"\0\0" + QUESTION[8:]):
            stranger.ask(octets)
        wrong += expect("answers to what is no question", stranger.said(), 0)
        everybody = Stranger("10.9.0.255")
        everybody.ask(QUESTION)
        wrong += expect("answers to a broadcast", everybody.said(), 0)
        stranger.ask(QUESTION)
        wrong += expect("and then", stranger.hear()[0], YES)
    return wrong


def flooded(warpsock, near):
    """Of one host's questions some hundreds are answered in a second; the server goes on."""
    with Hosts(warpsock, near) as hosts:
        server = hosts.serve("server", "::", 7000)
        time.sleep(0.3)
        stranger, begin, sent = Stranger(), time.monotonic(), 0
        stranger.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 20)
        while time.monotonic() < begin + 1:
            for _ in range(100):
                stranger.ask(QUESTION)
            sent += 100
        got, took = stranger.said(), time.monotonic() - begin
        print(f"# {sent} questions, {got} answers")
        wrong = expect(f"{got} answers in {took:.1f} s", 0 < got <= 200 * (took + 1), True)
        wrong += expect("questions more than answers", sent > 2 * got, True)
        wrong += expect("then", next_in_time(hosts, 7000, DDP), DDP)
        return wrong + expect("the server", server.poll(), None)


CASES = (
    ("DDP everywhere, with no rule", everywhere),
    ("many connections at once ask once", many_at_once),
    ("yes of one port, no of another", by_port),
    ("a family of processes", in_children),
    ("rules say who is asked", rules),
    ("options say whether, and where", options),
    ("another process takes over", owner_goes),
    ("who answers is stopped", owner_stops),
    ("a daemon answers", daemon),
    ("listeners of several users", users),
    ("dropped: silence is remembered of the host", dropped),
    ("what a stranger answers is not believed", forged),
    ("a late yes counts", late),
    ("the question goes again with the SYN", lost),
    ("who asks is answered from where it has asked", strangers),
    ("a flood of questions", flooded),
)
FILTERS = (
    ("a firewall drops the question", partial(filtered, "drop")),
    ("a firewall rejects the question", partial(filtered, "reject")),
    ("a port is forwarded: a wrong yes costs one connection", forwarded),
)


def main():
    warpsock = os.path.abspath(sys.argv[1])
    if not far.inside():
        return
    writer, near = tap.Writer(), Near()
    words = [word for word in sys.argv[2:] if word != "inside"]
    try:
        for name, case in CASES:
            if words and not any(word in name for word in words):
                continue
            wrong = case(warpsock, near)
            if wrong is None:
                writer.skip(name, "not root")
            else:
                writer.case(name, wrong)
        for name, case in FILTERS:
            if words and not any(word in name for word in words):
                continue
            if has_nftables(near):
                writer.case(name, case(warpsock, near))
            else:
                writer.skip(name, "the kernel has no nftables")
        if not words or "added" in words:
            added(warpsock, near, writer)
    finally:
        near.end()
    writer.finish()


main()
