#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Runs every operation over loopback, captures it, and has the capture judged twice.

    judge.py OPS [--keep FILE]

Our own decoder judges every connection: what was sent, in which order, in which form. Wireshark's
dissector, which nobody here wrote, judges what it can: the limits of it are in BLIND, with reasons.
"""
import argparse
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent)]
import decode  # noqa: E402
import rdmap  # noqa: E402
import tap  # noqa: E402

# --- what each scenario of ops.c must look like ---------------------------------------------------

SIZES = 8
DO_ALL = (["Send"] * SIZES + ["Send SE", "Send Inv", "Send SE Inv"] + ["Write", "Send"] * SIZES
          + ["Read Request"] * SIZES + ["Immediate", "Immediate SE"] + ["Atomic Request"] * 3)
ANSWER_ALL = ["Read Response"] * SIZES + ["Atomic Response"] * 3
RTR = {"send": "Send", "write": "Write", "read": "Read Request"}


@dataclass
class Want:
    kind: str
    crc: bool = True
    marked: tuple = (False, False)
    rev: int = 2
    p2p: bool = True
    forms: frozenset = frozenset(("write", "read"))  # of RTR, as offered
    private: int = 0
    mss: int = 0
    faults: tuple = ()
    headers: str = "D"
    before: tuple = ()  # messages before the one that is refused


def doom(*faults, headers="D", before=()):
    return Want("doom", faults=faults, headers=headers, before=before)


BOTH = (True, True)
SCENARIOS = {
    "all": Want("all"),
    "all-nocrc": Want("all", crc=False),
    "all-crc-a": Want("all"),
    "all-crc-b": Want("all"),
    "all-markers": Want("all", marked=BOTH),
    "all-markers-a": Want("all", marked=(False, True)),  # who asks for them gets them
    "all-markers-b": Want("all", marked=(True, False)),
    "all-markers-nocrc": Want("all", marked=BOTH, crc=False),
    "markers-nocrc": Want("little", marked=BOTH, crc=False),
    "all-mss": Want("all", mss=1448),
    "all-mss-markers": Want("all", mss=1448, marked=BOTH),
    "all-rev1": Want("all", rev=1, p2p=False),
    "all-crossed": Want("all"),
    "rtr-write": Want("little", forms=frozenset(("write",))),
    "rtr-read": Want("little", forms=frozenset(("read",))),
    "rtr-send": Want("little", forms=frozenset(("send",))),
    "rtr-all": Want("little", forms=frozenset(("send", "write", "read"))),
    "no-p2p": Want("little", p2p=False),
    "private": Want("little", private=508),
    "private-rev1": Want("little", private=512, rev=1, p2p=False),
    "reject": Want("reject"),
    "reject-rev1": Want("reject", rev=1, p2p=False),
    "write-stag": doom((1, 1, 0)),
    "write-bounds": doom((1, 1, 1)),
    "write-right": doom((1, 1, 0), (0, 1, 2)),
    "write-pd": doom((1, 1, 2)),
    "write-wrap": doom((1, 1, 3)),
    "write-invalidated": doom((1, 1, 0), before=("Send Inv",)),
    "read-stag": doom((0, 1, 0), headers="DR"),
    "read-bounds": doom((0, 1, 1), headers="DR"),
    "read-right": doom((0, 1, 2), headers="DR"),
    "read-pd": doom((0, 1, 3), headers="DR"),
    "read-wrap": doom((0, 1, 4), headers="DR"),
    "read-invalidated": doom((0, 1, 0), headers="DR", before=("Send Inv",)),
    "send-no-buffer": doom((1, 2, 2)),
    "send-too-long": doom((1, 2, 5)),
    "send-invalidate": doom((0, 1, 9), (0, 2, 9)),
    "atomic-unaligned": doom((0, 2, 7)),
}

# --- what Wireshark 4.0 cannot judge --------------------------------------------------------------

def blind(session):
    """Why the dissector cannot judge this connection's FPDUs, or None."""
    if session.marked[0] != session.marked[1]:
        return "markers in one direction: the other one is not dissected"
    for side in (0, 1):
        if session.marked[side] and any(f.end % 512 == 0 for f in session.fpdus[side]):
            return "an FPDU ends where a marker follows: it is taken as the end of that FPDU"
        if session.marked[side] and any(f.begun != f.packet for f in session.fpdus[side]):
            return "an FPDU with markers is cut by TCP: it is not put together again"
    return None


# --- capture --------------------------------------------------------------------------------------


class Capture:
    """dumpcap on the loopback device, for one address."""

    def __init__(self, path, address):
        self.path = path
        self.process = subprocess.Popen(
            ["dumpcap", "-q", "-P", "-i", "lo", "-B", "32", "-f", f"tcp and host {address}",
             "-w", str(path)], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)

    def wait_ready(self):
        for line in self.process.stderr:
            if line.startswith("File:"):
                return True
        return False

    def finish(self):
        """Ends it when the file has stopped to grow; returns what it says about lost packets."""
        size = -1
        while size != self.path.stat().st_size:
            size = self.path.stat().st_size
            time.sleep(0.5)
        self.process.send_signal(signal.SIGINT)
        rest = self.process.communicate(timeout=20)[1]
        dropped = re.search(r"received/dropped on interface.*: \d+/(\d+)", rest)
        return int(dropped[1]) if dropped else None


def run_ops(ops, path):
    """Returns ports and Terminates of the scenarios as ops reports them, and complaints."""
    address = f"127.{random.randint(1, 254)}.{random.randint(0, 254)}.{random.randint(1, 254)}"
    capture = Capture(path, address)
    if not capture.wait_ready():
        return None, None, ["dumpcap did not start"]
    problems = []
    done = subprocess.run([ops, address], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          text=True, timeout=150)
    if done.returncode:
        problems += [f"exit status {done.returncode}"] + done.stderr.splitlines()[-10:]
    dropped = capture.finish()
    if dropped != 0:
        problems.append(f"dumpcap lost packets: {dropped}")
    ports, terms = {}, {}
    for line in done.stdout.splitlines():
        kind, name, *numbers = line.split()
        if kind == "conn":
            ports[int(numbers[0])] = name
        else:
            terms[name] = tuple(map(int, numbers))
    return ports, terms, problems


def may_capture():
    done = subprocess.run(["dumpcap", "-q", "-i", "lo", "-a", "duration:0", "-w", "/dev/null"],
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    return done.returncode == 0


# --- our own judgement ----------------------------------------------------------------------------


def names(session, side):
    return [message.name for message in session.messages[side]]


def differ(what, got, want):
    return [] if got == want else [f"{what}: {got}, wanted: {want}"]


def judge_start(session, want):
    request, reply = session.frames
    problems = differ("CRC", session.crc, want.crc)
    problems += differ("markers of the two directions", session.marked, want.marked)
    problems += differ("revisions", (request.rev, reply.rev), (want.rev, want.rev))
    problems += differ("enhanced", request.enhanced, want.rev == 2)
    problems += differ("peer-to-peer", request.p2p, want.p2p)
    if want.p2p:
        problems += differ("RTR forms offered", request.rtr, want.forms)
    if want.p2p and not reply.rejected:
        problems += differ("number of RTR forms chosen", len(reply.rtr), 1)
    problems += differ("private data", len(request.private), want.private)
    return problems


def rtr_of(session):
    """What the RTR adds to the two directions."""
    request, reply = session.frames
    if not request.p2p:
        return [], []
    form = min(request.rtr & reply.rtr)
    return [RTR[form]], ["Read Response"] if form == "read" else []


def judge_all(session, want):
    asks, answers = rtr_of(session)
    problems = differ("->", names(session, 0), asks + DO_ALL + ANSWER_ALL)
    problems += differ("<-", names(session, 1), answers + ANSWER_ALL + DO_ALL)
    problems += differ("ends", session.ends, ["FIN", "FIN"])
    big = [m for side in (0, 1) for m in session.messages[side] if m.length == 70000]
    problems += differ("messages of 70000 octets", len(big), 6)
    if want.mss:
        longest = max(len(f.ulpdu) + 6 for side in (0, 1) for f in session.fpdus[side])
        problems += [] if longest <= want.mss else [f"an FPDU of {longest} octets"]
        problems += [f"{m}" for m in big if m.segments < 70000 // want.mss]
    return problems


def judge_little(session, _want):
    asks, answers = rtr_of(session)
    return (differ("->", names(session, 0), asks + ["Send"])
            + differ("<-", names(session, 1), answers + ["Send"]))


def judge_reject(session, _want):
    reply = session.frames[1]
    return (differ("R", reply.rejected, True) + differ("its words", reply.private, b"not today")
            + differ("FPDUs", session.fpdus, [[], []]))


def judge_doom(session, want):
    asks, answers = rtr_of(session)
    culprit = session.messages[0][-1]
    problems = differ("<-", names(session, 1), answers + ["Terminate"])
    problems += differ("->", names(session, 0)[:-1], asks + list(want.before))
    if problems:
        return problems
    term = session.messages[1][-1]
    if term.fault not in want.faults:
        problems.append(f"Terminate {term.fault}, wanted: {want.faults}")
    ulpdu = [f.ulpdu for f in session.fpdus[0]][-1]
    return problems + judge_term(term.payload, ulpdu, culprit, want.headers)


def judge_term(payload, ulpdu, culprit, headers):
    """RFC 5040 section 4.8: a Terminate shows what it is about."""
    length = 14 if ulpdu[0] & 0x80 else 18
    bits = 0xC0 | (0x20 if "R" in headers else 0)
    problems = differ("header bits", payload[2], bits)
    problems += differ("segment length", int.from_bytes(payload[4:6], "big"), len(ulpdu))
    problems += differ("DDP header", payload[6:6 + length].hex(), ulpdu[:length].hex())
    if "R" in headers:
        problems += differ("RDMAP header", payload[6 + length:].hex(), culprit.payload.hex())
    return problems


JUDGES = {"all": judge_all, "little": judge_little, "reject": judge_reject, "doom": judge_doom}


def judge(session, want):
    problems = list(session.problems)
    if None in session.frames:
        return problems
    problems += judge_start(session, want)
    return problems + JUDGES[want.kind](session, want)


# --- Wireshark's ----------------------------------------------------------------------------------


def tshark(path):
    """The dissection, packet by packet."""
    # Another protocol may have the port by chance: what the octets look like goes first.
    done = subprocess.run(["tshark", "-n", "-r", str(path), "-V", "--disable-protocol", "rpcordma",
                           "-o", "tcp.try_heuristic_first:TRUE"],
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=200,
                          errors="replace")
    return re.split(r"(?m)^Frame \d+: ", done.stdout)[1:]


def by_port(packets, ports):
    """The dissections of each connection, by the port that names it."""
    found = {port: [] for port in ports}
    for packet in packets:
        for port in re.findall(r"(?m)^    (?:Source|Destination) Port: (\d+)$", packet):
            if int(port) in found:
                found[int(port)].append(packet)
    return found


def opcodes_seen(text):
    """The segments by opcode; those of atomics (FetchAdd) are written without 0x."""
    return Counter(int(code, 16) for code in re.findall(r"OpCode: .*\(0x([0-9a-f]+)\)", text))


def judge_tshark(session, packets):
    text = "\n".join(packets)
    problems = re.findall(r".*Malformed.*|.*Bad CRC32.*|.*\[Expert Info \(Error.*", text)
    fpdus = sum(len(f) for f in session.fpdus)
    good = text.count("(Good CRC32)")
    if session.crc:
        problems += differ("FPDUs with a good CRC", good, fpdus)
    frames = text.count("Request frame header"), text.count("Reply frame header")
    problems += differ("start-up frames", frames, (1, 1))
    want = Counter(f.ulpdu[1] & 15 for side in (0, 1) for f in session.fpdus[side])
    return problems + differ("segments by opcode", opcodes_seen(text), want)


# --- all of it ------------------------------------------------------------------------------------


def cases(writer, path, ports, terms):
    found = {ports[s.client[1]]: s for s in decode.sessions(path) if s.client[1] in ports}
    shown = by_port(tshark(path), ports)
    shown = {ports[port]: packets for port, packets in shown.items()}
    for name, want in SCENARIOS.items():
        session = found.get(name)
        if session is None:
            writer.case(f"{name}: on the wire", ["there is no such connection"])
            continue
        problems = judge(session, want)
        if want.faults and not problems:
            problems = differ("what the API says of the Terminate", terms.get(name),
                              session.messages[1][-1].fault)
        writer.case(f"{name}: on the wire", problems)
        reason = blind(session)
        if reason:
            writer.skip(f"{name}: dissected", f"Wireshark: {reason}")
        else:
            writer.case(f"{name}: dissected", judge_tshark(session, shown[name]))
    seen = {message.opcode for s in found.values() for side in (0, 1)
            for message in s.messages[side]}
    writer.case("every opcode was there", differ("opcodes", seen, set(rdmap.ROWS)))
    writer.case("every connection is of a scenario",
                differ("names", sorted(set(ports.values()) - set(SCENARIOS)), []))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("ops")
    parser.add_argument("--keep", type=Path, help="copy the capture there")
    options = parser.parse_args()
    writer = tap.Writer()
    if not (shutil.which("dumpcap") and shutil.which("tshark")):
        print("1..0 # SKIP no tshark here")
        return
    if not may_capture():
        print("1..0 # SKIP no right to capture on lo")
        return
    with tempfile.TemporaryDirectory(prefix="warpsock-capture-") as name:
        path = Path(name) / "ops.pcap"
        ports, terms, problems = run_ops(options.ops, path)
        writer.case("all scenarios run", problems)
        if options.keep and path.exists():
            shutil.copy(path, options.keep)
        if ports is not None:
            cases(writer, path, ports, terms)
    writer.finish()


if __name__ == "__main__":
    main()
