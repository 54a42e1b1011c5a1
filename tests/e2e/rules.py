#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What the launcher refuses, what it explains, and what each kind of rule does.

    rules.py WARPSOCK
"""
import json
import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
import tap  # noqa: E402
from launch import LIMIT, Stage, differences  # noqa: E402

SERVER, CLIENT = ([sys.executable, str(HERE / "programs" / name)]
                  for name in ("server.py", "client.py"))
NAME = os.path.basename(sys.executable)
OCTETS = 100_000

# What is given, and the complaint; FILE is a file with the third item in it
BAD = (
    (["--use", "dpd * * *:*"], {}, "",
     '--use:1:1: expected ddp, auto or tcp, got "dpd"'),
    (["--use", "ddp * * *:*", "--use", "ddp client * 10.0.0.0/33:*"], {}, "",
     '--use:2:23: expected a length from 0 to 32, got "33"'),
    (["--use", "ddp * nginx *:80x"], {}, "", '--use:1:15: expected a port or *, got "80x"'),
    (["--use", "ddp * [a *:*"], {}, "", '--use:1:7: expected a ] to end the [, got "[a"'),
    (["--all"], {"WARPSOCK_USE": "ddp * * *:*\nuse tcp both * *:*"}, "",
     'WARPSOCK_USE:2:9: expected client, server or *, got "both"'),
    ([], {"WARPSOCK_CONFIG": "FILE"}, "# ours\nuse ddp * * *:*\nddp * * *:1\n",
     'FILE:3:1: expected use, got "ddp"'),
    ([], {"WARPSOCK_CONFIG": "FILE"}, "use ddp * * *:9-8",
     "FILE:1:15: expected the lower port first"),
    ([], {"WARPSOCK_CONFIG": "/nowhere/at/all"}, "",
     "/nowhere/at/all: cannot be read: No such file"),
    (["--profile", "fast"], {}, "", 'expected one of latency, cpu, throughput, safe, got "fast"'),
    (["--provider", "none"], {}, "", 'provider: expected one of auto, soft'),
    ([], {"WARPSOCK_PROVIDER": "none"}, "", 'provider: expected one of auto, soft'),
    (["--all", "--mode", "off"], {}, "", '--mode: expected on, auto or spin, got "off"'),
    ([], {"WARPSOCK_LINGER": "-1"}, "", "WARPSOCK_LINGER: expected a time from 0 to 86400s"),
    (["--report", "/nowhere/at/all"], {}, "", "/nowhere/at/all: No such file or directory"),
    (["--report", "/"], {}, "", "/: Is a directory"),
    (["--report", ""], {}, "", '--report: expected a path or -, got ""'),
    (["--report"], {}, "", "run: --report needs a value"),
    (["--all", "--mode"], {}, "", "run: --mode needs a value: MODE"),
    (["--nothing"], {}, "", "run: there is no option --nothing\nSee: warpsock help run"),
    (["--rport=x"], {}, "", "run: there is no option --rport; did you mean --report?"),
    (["--all=x"], {}, "", "run: --all has no value"),
    (["-x"], {}, "", "run: there is no option -x"),
    (["--mode", "on"], {}, "", "--mode sets what --all does, and there is no --all"),
    (["--profile", "saef"], {}, "", 'got "saef"; did you mean safe?'),
    (["--use", "x", "--use", "y"], {"WARPSOCK_CONFIG": "FILE"}, "use z\nuse ddp * * *:*\nuse\n",
     '--use:1:1: expected ddp, auto or tcp, got "x"\n'
     'warpsock: --use:2:1: expected ddp, auto or tcp, got "y"\n'
     'warpsock: FILE:1:5: expected ddp, auto or tcp, got "z"\n'
     'warpsock: FILE:3:4: expected ddp, auto or tcp, got the end of the rule\n'),
)


def launch(warpsock, args, env=None, **kwargs):
    return subprocess.run([warpsock, *args], env=dict(os.environ, **(env or {})), text=True,
                          capture_output=True, timeout=LIMIT, **kwargs)


def bad(writer, warpsock, stage):
    for number, (args, env, text, complaint) in enumerate(BAD):
        path, witness = stage.dir / f"rules{number}", stage.dir / "witness"
        path.write_text(text)
        env = {name: value.replace("FILE", str(path)) for name, value in env.items()}
        done = launch(warpsock, ["run", *args, "--", "touch", str(witness)], env)
        complaint = complaint.replace("FILE", str(path))
        problems = [] if complaint in done.stderr else [f"said {done.stderr!r}"]
        problems += [] if done.returncode == 125 else [f"status {done.returncode}"]
        problems += ["the program was started"] if witness.exists() else []
        name = complaint.replace(str(path), "FILE").splitlines()[0]
        writer.case(f"refused: {name}", problems)


def targets(writer, warpsock, stage):
    source = stage.dir / "nothing.c"
    source.write_text("int main(void) { return 0; }\n")
    script = stage.dir / "script"
    script.write_text("#!/bin/sh -e\necho from a script $1\n")
    script.chmod(0o755)
    done = launch(warpsock, ["run", "--all", "--", "./script", "x"], cwd=stage.dir)
    writer.case("a script", [] if done.stdout == "from a script x\n"
                else [done.stdout, done.stderr])
    for command, status in (("no-such-command", 127), (str(source), 126)):
        done = launch(warpsock, ["run", "--", command])
        writer.case(f"status {status} for what cannot run",
                    [] if done.returncode == status else [f"{done.returncode}: {done.stderr}"])


EXPLAIN = (
    (["client", "x", "10.0.0.1:80"], 0, r"no rule matches: plain TCP\nRULE_NONE \(1,"),
    (["--all", "client", "x", "10.0.0.1:80"], 0,
     r"use auto \* \* \*:\*\n    from --all\n.*, else TCP"),
    (["--all", "--mode", "on", "server", "x", "[::1]:80"], 0,
     r"use ddp .*\n    from --all\n.*only"),
    (["--use", "tcp * y *:*", "--use", "auto client x 10.0.0.0/8:*", "client", "x", "10.0.0.1:80"],
     0, r"use auto client x 10.0.0.0/8:\*\n    from --use, number 2\n.*the rule names the address"),
    (["--all", "client", "x", "10.0.0.1:80"], 0,
     "host is asked beside the connection if it is near"),
    (["--use", "auto * * *:* ask never", "client", "x", "10.0.0.1:80"], 0,
     r"use auto \* \* \*:\* ask never\n.*\n.*sent a Request only if"),
    (["--use", "auto * * *:* ask never", "server", "x", "10.0.0.1:80"], 0, "are not told of it"),
    (["--use", "auto client * 10.0.0.0/8:* ask always", "client", "x", "10.0.0.1:80"], 0,
     "asked beside the connection, wherever it is"),
    (["ASK_SILENT"], 0, r"ASK_SILENT \(110, the peer\)\n.*\n.*docs/firewalls.md"),
    (["--use", "tcp server * [::ffff:1.2.3.4]:*", "server", "x", "1.2.3.4:1"], 0, "plain TCP"),
    (["PEER_UNKNOWN"], 0, r"PEER_UNKNOWN \(4, a choice of this end\)\n    Mode auto"),
    (["PEER_UNKOWN"], 1, 'no reason code is called "PEER_UNKOWN"; did you mean PEER_UNKNOWN'),
    (["nothing at all"], 1, "no reason code .* lists them"),
    (["peer_unknown"], 0, r"PEER_UNKNOWN \(4,"),
    (["100"], 0, r"^PEER_NOT_MPA \(100,"),
    (["108"], 0, r"^UNREACHABLE \(108,"),
    (["econnrefused"], 0, r"^ECONNREFUSED \(errno 111\).*\nREFUSED \(102,"),
    (["ECONNREFUSED"], 0, r"(?s)^ECONNREFUSED .*REFUSED \(102,.*\nor\nUNREACHABLE \(108,"),
    (["104"], 0, r"(?s)^LATE_REQUEST \(104,.*ECONNRESET \(errno 104\).*\nPEER_CLOSED \(107,"),
    (["110"], 0, r"^ASK_SILENT \(110,(.*\n)+ETIMEDOUT \(errno 110\).*\nPROBE_TIMEOUT \(101,"),
    (["one", "two"], 125, "explain: a role, a program and an address, or one code"),
    ([], 0, r"(?s)^NONE \(0.*LATE_REQUEST \(104.*STATE_DAMAGED \(310.*FLOODED \(311"),
    (["client", "x", "10.0.0.1"], 125, "expected an address, a colon"),
    (["client", "x", "*:80"], 125, "expected one address and one port"),
    (["both", "x", "10.0.0.1:1"], 125, "expected client or server"),
)


def words(writer, warpsock):
    for args, status, wanted in EXPLAIN:
        done = launch(warpsock, ["explain", *args], {"WARPSOCK_CONFIG": ""})
        ok = done.returncode == status and re.search(wanted, done.stdout + done.stderr)
        writer.case(f"explain {' '.join(args)}",
                    [] if ok else [f"status {done.returncode}", done.stdout, done.stderr])
    done = launch(warpsock, ["options", "--profile", "safe"], {"WARPSOCK_LINGER": "3"})
    rows = {line.split()[0]: line.split()[1:3] for line in done.stdout.splitlines()}
    wanted = {"WARPSOCK_LINGER": ["environment", "3s"], "WARPSOCK_GRACE": ["profile", "100ms"],
              "WARPSOCK_START": ["default", "10s"], "WARPSOCK_PROVIDER": ["profile", "soft"]}
    writer.case("options with their values and where they come from",
                [f"{name}: {rows.get(name)}" for name in wanted if rows.get(name) != wanted[name]])
    for args, status, wanted in OPTIONS:
        done = launch(warpsock, ["options", *args], {"WARPSOCK_LINGER": "3"})
        ok = done.returncode == status and re.search(wanted, done.stdout + done.stderr)
        writer.case(f"options {' '.join(args)}",
                    [] if ok else [f"status {done.returncode}", done.stdout, done.stderr])


def table(writer, warpsock, stage):
    """`warpsock rules`, alone and below `run`."""
    path = stage.dir / "table"
    path.write_text("# ours\nuse auto client * 10.0.0.0/8:*\nuse tcp client ssh 10.1.0.0/16:22\n")
    env = {"WARPSOCK_CONFIG": str(path), "WARPSOCK_USE": "tcp server * *:22"}
    whole = (f"--use\n    1  use ddp * a *:*\nWARPSOCK_USE\n    1  use tcp server * *:22\n{path}\n"
             f"    2  use auto client * 10.0.0.0/8:*\n    3  use tcp client ssh 10.1.0.0/16:22\n"
             f"       never decides: {path}, line 2 comes before it\n")
    use = ["--use", "ddp * a *:*"]
    for name, args, wanted in (
            ("rules by their source", ["rules", *use], whole),
            ("the rules of a command, seen from within",
             ["run", *use, "--", warpsock, "rules"],
             whole.replace("--use\n", "the command line\n")),
            ("rules behind --all", ["rules", "--all"],
             whole.replace("--use\n    1  use ddp * a *:*", "--all\n    1  use auto * * *:*"))):
        done = launch(warpsock, args, env)
        got = done.stdout
        if name == "rules behind --all":
            got = re.sub(r"       never decides: --all comes before it\n", "", got)
            wanted = re.sub(r"       never decides:.*\n", "", wanted)
        writer.case(name, [] if got == wanted and not done.returncode else [got, done.stderr])
    done = launch(warpsock, ["rules"], {"WARPSOCK_CONFIG": ""})
    writer.case("no rule at all", [] if done.stdout == "there is no rule: every socket stays on "
                "TCP\n" else [done.stdout, done.stderr])


OPTIONS = (
    (["WARPSOCK_LINGER"], 0, r"(?s)^WARPSOCK_LINGER\n    How long.*value: 3s \(environment\)\n"
     r"    default: 30s\n    may be: a time from 0 to 86400s\n$"),
    (["spin"], 0, r"(?s)^WARPSOCK_SPIN\n.*value: 50us \(default\)\n    default: 50us\n"),
    (["--profile", "latency", "spin"], 0, r"value: 200us \(profile\)"),
    (["sipn"], 125, r"no option is called sipn; did you mean WARPSOCK_SPIN\?"),
    (["rules"], 125, "no option is called rules"),
    (["one", "two"], 125, "options: one name, not 2"),
)


def outcome(report):
    """In one word: ddp, or the reasons for TCP."""
    if report is None:
        return "no report"
    counts = report["connections"]
    reasons = [*report["fallbacks"], *(["ddp"] if counts["software"] else [])]
    return " ".join(reasons) or f"nothing: {json.dumps(report)}"


class Pair:
    """A server and a client of their own rules, and what became of their connections."""

    def __init__(self, warpsock, server, client, bind="127.0.0.1", host=None, way="blocking",
                 env=None, tries=False):
        with Stage(warpsock) as stage:
            env = {"WARPSOCK_PROBE_TIMEOUT": "10s", **(env or {})}
            # A client that tries in vain connects twice
            number = "2" if tries else "1"
            serving = stage.start("server", [*SERVER, bind, number], rules=server, env=env)
            port = stage.wait_text("server").strip()
            client = [rule.replace("PORT", port) for rule in client]
            status = stage.run("client", [*CLIENT, way, host or bind, port, str(OCTETS), "1"],
                               rules=client, env=env, limit=20)
            self.said = stage.text("client") + stage.text("client", "err")
            self.ok = status == 0
            stage.end(serving, 10)
            self.ends = (outcome(stage.report("server")), outcome(stage.report("client")))
            self.reports = (stage.report("server"), stage.report("client"))


# Rules of the server, of the client, how both are bound, and what becomes of each end
KINDS = (
    (["ddp * * *:*"], ["ddp * * *:*"], {}, ("ddp", "ddp")),
    (["auto * * *:*"], ["ddp * * *:*"], {}, ("ddp", "ddp")),
    (["auto * * *:*"], ["auto client * 127.0.0.1:PORT"], {}, ("ddp", "ddp")),
    (["auto * * *:*"], ["auto client * 127.0.0.1:1"], {}, ("PEER_NOT_MPA", "RULE_NONE")),
    (["auto * * *:*"], ["tcp * * *:*", "ddp * * *:*"], {}, ("PEER_NOT_MPA", "RULE_TCP")),
    (["tcp * * *:*"], ["auto client * 127.0.0.0/8:*"], {"tries": True},
     ("RULE_TCP", "PEER_NOT_MPA")),
    ([], ["tcp * * *:*"], {}, ("RULE_NONE", "RULE_TCP")),
    (["ddp client * *:*"], ["ddp server * *:*"], {}, ("RULE_NONE", "RULE_NONE")),
    ([f"ddp server {NAME[0]}* *:*"], [f"ddp client {NAME} *:*"], {}, ("ddp", "ddp")),
    ([f"ddp * x{NAME} *:*"], ["tcp * * *:*"], {}, ("RULE_NONE", "RULE_TCP")),
    (["ddp server * 127.0.0.0/30:*"], ["ddp client * 127.0.0.1:PORT"], {}, ("ddp", "ddp")),
    (["auto server * 10.0.0.0/8:*"], ["tcp * * *:*"], {}, ("RULE_NONE", "RULE_TCP")),
    (["ddp server * [::1]:*"], ["auto client * [::]/1:*"], {"bind": "::1"}, ("ddp", "ddp")),
    (["ddp server * [::1]:*"], ["ddp client * [::]/0:*"], {"bind": "::1"}, ("ddp", "ddp")),
    (["auto server * [::1]:*"], ["auto client * [::]/0:*"], {"bind": "::1"}, ("ddp", "ddp")),
    (["tcp server * [::1]:*"], ["auto client * [::]/0:*"], {"bind": "::1"},
     ("RULE_TCP", "PEER_UNKNOWN")),
    (["ddp server * 127.0.0.1:*"], ["auto client * [::1]:*"], {"bind": "::1", "tries": True},
     ("RULE_NONE", "PEER_NOT_MPA")),
    (["ddp server * 127.0.0.1:*"], ["auto client * [::ffff:127.0.0.1]:PORT"],
     {"bind": "::", "host": "127.0.0.1"}, ("ddp", "ddp")),
    (["ddp server * 127.0.0.1:*"], ["auto client * 127.0.0.1:PORT"],
     {"bind": "::", "host": "::ffff:127.0.0.1"}, ("ddp", "ddp")),
)


def kinds(writer, warpsock):
    for server, client, how, wanted in KINDS:
        pair = Pair(warpsock, server, client, **how)
        problems = [] if pair.ok else [pair.said]
        problems += [] if pair.ends == wanted else [f"{pair.ends}, not {wanted}"]
        writer.case(f"{server or 'nothing'} and {client} {how or ''}", problems)


def sources(writer, warpsock):
    """Command line, then variable, then file; and the interposer without a launcher."""
    with Stage(warpsock) as stage:
        path = stage.dir / "rules"
        path.write_text("use ddp * * *:*\n")
        env = {"WARPSOCK_CONFIG": str(path)}
        pair = Pair(warpsock, [], [], env=env)
        writer.case("a file", [] if pair.ends == ("ddp", "ddp") else [str(pair.ends), pair.said])
        pair = Pair(warpsock, [], [], env={**env, "WARPSOCK_USE": "tcp * * *:*"})
        writer.case("a variable goes before it",
                    [] if pair.ends == ("RULE_TCP", "RULE_TCP") else [str(pair.ends), pair.said])
        pair = Pair(warpsock, ["ddp * * *:*"], ["ddp * * *:*"],
                    env={**env, "WARPSOCK_USE": "tcp * * *:*"})
        writer.case("and the command line before that",
                    [] if pair.ends == ("ddp", "ddp") else [str(pair.ends), pair.said])


# A program with rules of its own /etc, seen by it and its launcher alone
IN_ETC = 'mount --bind "$1" /etc && shift && exec "$@"'
ITSELF = """
import socket
listener = socket.create_server(("127.0.0.1", 0))
client = socket.create_connection(listener.getsockname())
client.sendall(b"x")
listener.accept()[0].recv(1)
"""


def file_of_host(writer, warpsock):
    name = "/etc/warpsock.conf, unless another file is named"
    if os.getuid():
        writer.skip(name, "not root")
        return
    with Stage(warpsock) as stage:
        etc = stage.dir / "etc"
        shutil.copytree("/etc", etc, symlinks=True, ignore_dangling_symlinks=True)
        (etc / "warpsock.conf").write_text("use ddp * * 127.0.0.0/8:*\n")
        inside = ["unshare", "-m", "sh", "-c", IN_ETC, "sh", str(etc)]
        got = []
        for config in (None, ""):
            report = stage.dir / f"report{config}"
            env = {} if config is None else {"WARPSOCK_CONFIG": config}
            stage.run("itself", [*inside, stage.warpsock, "run", "--report", str(report), "--",
                                 sys.executable, "-c", ITSELF], mode=None, env=env)
            got.append(outcome(json.loads(report.read_text())) if report.exists() else
                       stage.text("itself", "err"))
        writer.case(name, [] if got == ["ddp", "RULE_NONE"] else got)


def handed_on(writer, warpsock):
    """What --profile and --provider say is the program's environment."""
    done = launch(warpsock, ["run", "--profile", "safe", "--provider", "verbs", "--", warpsock,
                             "options"], {"WARPSOCK_GRACE": "7ms"})
    rows = {line.split()[0]: line.split()[2] for line in done.stdout.splitlines()}
    wanted = {"WARPSOCK_PROVIDER": "verbs", "WARPSOCK_GRACE": "7ms",
              "WARPSOCK_PROBE_TIMEOUT": "1s"}
    writer.case("--provider goes before the variable, and that before --profile",
                [f"{name}: {rows.get(name)}" for name in wanted if rows.get(name) != wanted[name]])


def alone(writer, warpsock):
    done = launch(warpsock, ["run", "--", "sh", "-c", "echo $LD_PRELOAD"])
    library = done.stdout.strip()
    for rules, wanted in (("ddp * * *:*", "ddp"), ("", "RULE_NONE"), ("ddp * * *", "RULE_NONE")):
        with Stage(warpsock) as stage:
            env = {"LD_PRELOAD": library, "WARPSOCK_USE": rules, "WARPSOCK_LOG": "off",
                   "WARPSOCK_REPORT": str(stage.dir / "server.json"), "WARPSOCK_CONFIG": ""}
            server = stage.start("server", [*SERVER, "127.0.0.1", "1"], mode=None, env=env)
            port = stage.wait_text("server").strip()
            status = stage.run("client", [*CLIENT, "blocking", "127.0.0.1", port, "1000", "1"],
                               mode="on" if wanted == "ddp" else None)
            stage.end(server, 10)
            got = outcome(stage.report("server"))
        writer.case(f"without a launcher: {rules or 'no rule'}",
                    [] if status == 0 and got == wanted else [f"status {status}, {got}"])
    done = subprocess.run(["true"], env={"LD_PRELOAD": library, "WARPSOCK_USE": "x; ddp * * *:*; y",
                                         "WARPSOCK_CONFIG": ""}, capture_output=True, text=True,
                          timeout=LIMIT)
    wanted = "".join(rf"warpsock\[\d+\] err: WARPSOCK_USE:1:{column}: expected ddp, auto or tcp, "
                     rf'got "{word}"; no rule holds\n' for column, word in ((1, "x"), (17, "y")))
    writer.case("without a launcher: each mistake is logged",
                [] if re.fullmatch(wanted, done.stderr) else [done.stderr])


KILLED = """
import os, signal, socket, sys
where = ("127.0.0.1", int(sys.argv[1]))
for kill in (False, True, False):
    if not os.fork():
        with socket.create_connection(where) as sock:
            sock.sendall(b"x" * 1000)
            sock.recv(1)
            if kill:
                os.kill(os.getpid(), signal.SIGKILL)
            sock.shutdown(socket.SHUT_WR)
            while sock.recv(65536):
                pass
        sys.exit()
    os.wait()
"""


def killed(writer, warpsock):
    """What a process had to report goes with it, and nothing of the others' does."""
    with Stage(warpsock) as stage:
        server = stage.start("server", [*SERVER, "127.0.0.1", "3"], rules=["ddp * * *:*"])
        port = stage.wait_text("server").strip()
        status = stage.run("client", [sys.executable, "-c", KILLED, port], rules=["ddp * * *:*"],
                           limit=30)
        stage.end(server, 10)
        problems = [] if status == 0 else [f"status {status}", stage.text("client", "err")]
        problems += differences(stage.report("client"), {
            "connections": {"software": 2, "kernel": 0, "verbs": 0, "tcp": 0},
            "bytes": {"tx": 2000, "rx": 2000}, "errors": 0})
        problems += differences(stage.report("server"), {
            "connections": {"software": 3, "kernel": 0, "verbs": 0, "tcp": 0}})
        writer.case("a report when one of several processes is killed", problems)


# One thread with both ends: connect() must know its own listener by each address that leads there
OWN = """
import socket
for bound, to in (("0.0.0.0", "0.0.0.0"), ("0.0.0.0", "127.1.2.3"), ("127.0.0.1", "0.0.0.0"),
                  ("127.0.0.1", "::ffff:127.0.0.1"), ("::ffff:127.0.0.1", "127.0.0.1"),
                  ("::1", "::"), ("::", "127.0.0.1"), ("::", "::1")):
    listener, client = (socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
                        for host in (bound, to))
    listener.bind((bound, 0))
    listener.listen()
    client.connect((to, listener.getsockname()[1]))
    client.sendall(b"x")
    peer = listener.accept()[0]
    assert peer.recv(1) == b"x"
    peer.sendall(b"y")
    assert client.recv(1) == b"y"
    print(bound, to, flush=True)
"""


def own(writer, warpsock):
    for mode in ("on", "auto"):
        with Stage(warpsock) as stage:
            status = stage.run("own", [sys.executable, "-c", OWN], mode=mode, limit=40)
            problems = [] if status == 0 else [f"status {status}", stage.text("own"),
                                               stage.text("own", "err")]
            problems += differences(stage.report("own"), {
                "connections": {"software": 16, "kernel": 0, "verbs": 0, "tcp": 0},
                "fallbacks": {}, "errors": 0})
            writer.case(f"a program that connects to itself, {mode}", problems)


# DDP_MODE of the listener and of the client: "-" is not set
WISH = """
import socket, sys
SOL_DDP, DDP_MODE = 5041, 1
ends = socket.socket(), socket.socket()
for end, mode in zip(ends, sys.argv[1:]):
    if mode != "-":
        end.setsockopt(SOL_DDP, DDP_MODE, int(mode))
listener, client = ends
listener.bind(("127.0.0.1", 0))
listener.listen()
client.connect(listener.getsockname())
client.sendall(b"x")
peer = listener.accept()[0]
assert peer.recv(1) == b"x"
peer.sendall(b"y")
assert client.recv(1) == b"y"
for end in (listener, client):
    try:
        end.setsockopt(SOL_DDP, DDP_MODE, 1)
        sys.exit("the mode was changed late")
    except OSError as error:
        assert error.errno == 106, error
"""
OFF, ON, AUTO = "012"
WISHES = (
    (ON, ON, [], "ddp"), (AUTO, AUTO, [], "ddp"), (ON, "-", ["ddp client * *:*"], "ddp"),
    (OFF, OFF, [], "MODE_OFF"), (OFF, OFF, ["ddp * * *:*"], "MODE_OFF"),
    (ON, ON, ["tcp * * *:*"], "ddp"), (AUTO, OFF, [], "MODE_OFF PEER_NOT_MPA"),
    ("-", "-", [], "RULE_NONE"), ("-", AUTO, ["ddp server * *:*"], "ddp"),
)


def wishes(writer, warpsock):
    """What the program sets goes before the rules, in both directions."""
    for listener, client, rules, wanted in WISHES:
        with Stage(warpsock) as stage:
            status = stage.run("own", [sys.executable, "-c", WISH, listener, client], rules=rules,
                               limit=40)
            got = outcome(stage.report("own"))
            problems = [] if status == 0 else [f"status {status}", stage.text("own", "err")]
            problems += [] if got == wanted else [f"{got}, not {wanted}"]
            writer.case(f"DDP_MODE {listener} and {client}, rules {rules}", problems)


def several(writer, warpsock):
    """A parent and children that write to one report, of which one is killed."""
    script = ("for i in 1 2 3; do $TALK & done; $TALK & k=$!; wait; "
              "sleep 60 & kill -9 $!; wait; $TALK")
    with Stage(warpsock) as stage:
        server = stage.start("server", [*SERVER, "127.0.0.1", "5"], rules=["ddp * * *:*"])
        port = stage.wait_text("server").strip()
        talk = " ".join([*CLIENT, "blocking", "127.0.0.1", port, "1000", "1"])
        status = stage.run("client", ["sh", "-c", script], rules=["ddp * * *:*"],
                           env={"TALK": talk}, limit=30)
        stage.end(server, 10)
        problems = [] if status == 0 else [f"status {status}", stage.text("client", "err")]
        for name in ("server", "client"):
            problems += differences(stage.report(name), {
                "connections": {"software": 5, "kernel": 0, "verbs": 0, "tcp": 0},
                "fallbacks": {}, "bytes": {"tx": 5000, "rx": 5000}, "errors": 0})
        writer.case("a report of several processes", problems)
        report = stage.report("client") or {}
        writer.case("has these parts and no others",
                    [] if list(report) == ["connections", "fallbacks", "bytes", "fpdus", "programs",
                                            "waits", "errors"]
                    and list(report["fpdus"]) == ["tx", "rx"] else [str(report)])


# Two children outlive the command: one that is served late, and one that never connects
OUTLIVED = """
import os, socket, sys, time
if os.fork():
    sys.exit()
if os.fork():
    os.wait()
    sys.exit()
sys.stdin.read()
with socket.create_connection(("127.0.0.1", int(sys.argv[1]))) as sock:
    sock.sendall(b"late")
    sock.recv(4)
"""


def outlived(writer, warpsock):
    """The report is whole when the command's last process has ended, which the command is not."""
    with Stage(warpsock) as stage:
        server = stage.start("server", [*SERVER, "127.0.0.1", "1"], rules=["ddp * * *:*"])
        port = stage.wait_text("server").strip()
        said, says = os.pipe()
        client = stage.start("client", [sys.executable, "-c", OUTLIVED, port], stdin=said,
                             rules=["ddp * * *:*"])
        os.close(said)
        problems = [] if stage.end(client) == 0 else [stage.text("client", "err")]
        report = stage.report("client")
        if report and any(report["connections"].values()):
            problems.append(f"before anything was done: {report}")
        os.close(says)
        stage.end(server)
        wanted = {"connections": {"software": 1, "kernel": 0, "verbs": 0, "tcp": 0},
                  "bytes": {"tx": 4, "rx": 4}, "errors": 0}
        until = time.monotonic() + LIMIT
        while differences(stage.report("client"), wanted) and time.monotonic() < until:
            time.sleep(0.05)
        writer.case("a report of processes that outlive the command",
                    problems + differences(stage.report("client"), wanted))


def main():
    warpsock, writer = os.path.abspath(sys.argv[1]), tap.Writer()
    with Stage(warpsock) as stage:
        bad(writer, warpsock, stage)
        targets(writer, warpsock, stage)
        table(writer, warpsock, stage)
    words(writer, warpsock)
    kinds(writer, warpsock)
    sources(writer, warpsock)
    file_of_host(writer, warpsock)
    handed_on(writer, warpsock)
    alone(writer, warpsock)
    own(writer, warpsock)
    wishes(writer, warpsock)
    several(writer, warpsock)
    killed(writer, warpsock)
    outlived(writer, warpsock)
    writer.finish()


if __name__ == "__main__":
    main()
