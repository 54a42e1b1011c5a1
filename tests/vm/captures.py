# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What tshark and the decoder of tests/captures have against a capture of the lab."""
import re
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "captures"))
import decode  # noqa: E402
import pcap  # noqa: E402

SIW = {socket.inet_pton(socket.AF_INET, "10.7.0.1"), socket.inet_pton(socket.AF_INET6, "fd07::1")}
DEVICES = "_devices"  # at the end of a capture's name: both ends are siw's, which asks for no CRC
MIXED = "_mixed"  # the same: some connections are as in the one, some as in the other
CRC_OFF = "_crc_off"  # the same: nobody asks for a CRC
LIMIT = 120


def lost(path):
    """What tcpdump says of packets that it could not take, if there are any."""
    log = path.with_name(f"capture-{path.stem}.log").read_text(errors="replace")
    dropped = re.search(r"^([1-9]\d*) packets? dropped by kernel", log, re.M)
    return dropped and dropped[0]


def tshark(path, *options, check=False):
    return subprocess.run(["tshark", "-r", path, *options], stdout=subprocess.PIPE,
                          stderr=subprocess.DEVNULL, text=True, errors="replace",
                          timeout=LIMIT, check=check).stdout


def pieces(path, folder):
    """The capture, in files none of which has the same two ends twice: what its dissector of MPA
    knows of the first connection it takes for the second one's."""
    ends = ("ip.src", "ipv6.src", "tcp.srcport", "ip.dst", "ipv6.dst", "tcp.dstport")
    fields = [word for name in ("tcp.stream", *ends) for word in ("-e", name)]
    began, again = {}, {}
    for line in tshark(path, "-Y", "tcp.flags.syn == 1 && tcp.flags.ack == 0", "-T", "fields",
                       *fields).splitlines():
        number, *who = line.split("\t")
        streams = began.setdefault(tuple(who), [])
        if number not in streams:
            streams.append(number)
    for streams in began.values():
        for time, number in enumerate(streams[1:], 1):
            again.setdefault(time, []).append(number)
    if not again:
        return [path]
    later = [f"tcp.stream in {{{','.join(numbers)}}}" for numbers in again.values()]
    filters = [f"!({' || '.join(later)})", *later]
    files = [folder / f"{i}.pcap" for i in range(len(filters))]
    for file, words in zip(files, filters):
        tshark(path, "-Y", words, "-w", file, check=True)
    return files


def by_tshark(path):
    """Its complaints, the FPDUs that it saw, and those whose CRC it found good."""
    with tempfile.TemporaryDirectory() as folder:
        said = "".join(
            tshark(piece, "-o", "tcp.try_heuristic_first:TRUE", "-o",
                   "tcp.reassemble_out_of_order:TRUE", "--disable-protocol", "rpcordma", "-V",
                   "-Y", "iwarp_mpa") for piece in pieces(path, Path(folder)))
    fpdus = said.count("ULPDU length:")
    bad = [line.strip() for line in said.splitlines()
           if "Bad CRC32" in line or "Malformed" in line]
    if not fpdus:
        bad.append("it sees no FPDU")
    return bad, fpdus, said.count("(Good CRC32)")


def wrong_crcs(path, fpdus, good):
    """All FPDUs have a CRC, or none."""
    want = 0 if path.stem.endswith((CRC_OFF, DEVICES)) else fpdus
    if good != want and not path.stem.endswith(MIXED):
        yield f"{good} of {fpdus} FPDUs have a CRC, not {want}"


def is_siws_pad(problem):
    """siw does not clear the PAD of what it sends (its CRC covers what is there)."""
    return problem.startswith("FPDU at ") and ": pad " in problem


def is_siws_gate(problem):
    """siw as responder does not wait for the initiator's first FPDU, unless an RTR was agreed."""
    return problem.startswith("the responder sends in packet") and "before it may" in problem


def is_siws_cut(problem):
    """siw closes TCP with octets unsent; a grant that comes then ends it in the middle of them."""
    return problem.endswith((" without its last segment", " are no whole FPDU"))


def siws_own(session, connection, both):
    """The complaints about siw's half that are known ways of siw."""
    initiator, responder = decode.who_asks(connection)
    for side, end in enumerate((initiator, responder)):
        if (both or end[0] in SIW) and session.frames[side]:
            problems = []
            fpdus = decode.FpduReader(connection.halves[end], session.frames[side].size,
                                      session.marked[side], session.crc, problems).all()
            yield from filter(is_siws_pad, problems)
            if connection.halves[end].rst:
                decode.rdmap.messages(fpdus, problems)
                yield from filter(is_siws_cut, problems)
    if (both or responder[0] in SIW) and session.frames[1] and not session.frames[1].p2p:
        yield from filter(is_siws_gate, session.problems)


def has_keepalive(session):
    """As rsockets has it; RTR and what our device sends to wake siw are others."""
    return any(at and (message.name, message.length, message.stag, message.to) == ("Write", 0, 0, 0)
               for half in session.messages for at, message in enumerate(half))


def is_solicited(session):
    """Both ends have sent with Solicited Event."""
    return all(any("SE" in message.name for message in half) for half in session.messages)


# What each connection of a capture is like whose name begins so, and what is said where it is not
HOLDS = {"keepalives": (has_keepalive, "no keepalive"),
         "solicited": (is_solicited, "an end sends without Solicited Event")}


def by_decoder(path):
    """Its complaints, and the connections, messages and FPDUs that it saw."""
    bad, messages, fpdus = [], 0, 0
    connections = pcap.connections(path)
    for connection in connections:
        session = decode.decode(connection)
        known = set(siws_own(session, connection, path.stem.endswith((DEVICES, MIXED))))
        bad += [f"port {session.initiator[1]} -> {session.responder[1]}: {problem}"
                for problem in session.problems if problem not in known]
        bad += [f"port {session.initiator[1]} -> {session.responder[1]}: {said}"
                for name, (holds, said) in HOLDS.items()
                if path.stem.startswith(name) and not holds(session)]
        messages += len(session.messages[0]) + len(session.messages[1])
        fpdus += len(session.fpdus[0]) + len(session.fpdus[1])
    if not messages:
        bad.append("it sees no message")
    return bad, len(connections), messages, fpdus
