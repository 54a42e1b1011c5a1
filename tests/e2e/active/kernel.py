#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The examples' programs in the kernel of another host: what is asked is answered at its interface.

    kernel.py WARP-LIST WARP-HASH WARP-BTREE WARP-ACTIVE LIST-OBJECT

    clients --- veth near ======= veth far (XDP) --- servers
    one network namespace                           another one
"""
import os
import re
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "e2e")]
import tap  # noqa: E402
from example import Server, finish, run, start, until  # noqa: E402

NEAR, FAR, PORT = "10.77.0.1", "10.77.0.2", "7176"
LIST, HASH, BTREE, ACTIVE, OBJECT = sys.argv[1:6]
NO_ARENA = ("not permitted", "not supported")
TO = ("-a", FAR, "-p", PORT)


def ip(*words):
    subprocess.run(["ip", *words], check=True)


def inside(writer):
    """The rest of the test runs in a network namespace of its own; or does not."""
    if sys.argv[-1] == "inside":
        return
    if subprocess.run(["unshare", "-n", "true"], capture_output=True, check=False).returncode:
        writer.skip("all of it", "no network namespace is to be had")
        writer.finish()
    os.execvp("unshare", ["unshare", "-n", sys.executable, *sys.argv, "inside"])


class There:
    """The other host."""

    def __enter__(self):
        self.holder = subprocess.Popen(["unshare", "-n", "sleep", "1000"])
        self.enter = ["nsenter", f"--net=/proc/{self.holder.pid}/ns/net"]
        mine = os.readlink("/proc/self/ns/net")
        until(lambda: os.readlink(f"/proc/{self.holder.pid}/ns/net") != mine)
        ip("link", "add", "near", "type", "veth", "peer", "name", "far", "netns",
           str(self.holder.pid))
        ip("addr", "add", NEAR + "/24", "dev", "near")
        ip("link", "set", "near", "up")
        for words in (["addr", "add", FAR + "/24", "dev", "far"], ["link", "set", "far", "up"]):
            subprocess.run([*self.enter, "ip", *words], check=True)
        return self

    def __exit__(self, *_error):
        self.holder.kill()
        self.holder.wait()

    def server(self, program, *words):
        return Server(*self.enter, program, "serve", *TO, "-x", "far", *words)

    def attached(self):
        return "xdp" in subprocess.run([*self.enter, "ip", "link", "show", "far"],
                                       capture_output=True, text=True, check=True).stdout


def switches(pid):
    """How often threads of a process were given a processor."""
    return sum(int(found) for task in Path(f"/proc/{pid}/task").iterdir()
               for found in re.findall(r"ctxt_switches:\s+(\d+)",
                                       (task / "status").read_text(encoding="ascii")))


def ones_sum(octets):
    total = sum(struct.unpack(f"!{len(octets) // 2}H", octets))
    while total > 0xFFFF:
        total = (total & 0xFFFF) + (total >> 16)
    return total


def answers_read(seconds, found):
    """UDP datagrams from the server's port, off the interface, with IP's head."""
    with socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(0x0800)) as sock:
        sock.bind(("near", 0x0800))
        sock.settimeout(0.2)
        end = time.monotonic() + seconds
        while time.monotonic() < end and len(found) < 50:
            try:
                packet = sock.recv(2048)
            except socket.timeout:
                continue
            if packet[23] == 17 and packet[34:36] == struct.pack("!H", int(PORT)):
                found.append(packet[14:])


def checksums(writer):
    """Of each answer's datagram, over the pseudo header too."""
    found = []
    reader = threading.Thread(target=answers_read, args=(5, found))
    reader.start()
    time.sleep(0.3)
    run(LIST, "walk", *TO, "-X", "-k", "5", "-r", "40")
    reader.join()
    wrong = []
    for packet in found:
        udp = packet[20:struct.unpack("!H", packet[2:4])[0]]
        if ones_sum(packet[12:20] + struct.pack("!HH", 17, len(udp)) + udp) != 0xFFFF or \
                udp[6:8] == b"\0\0" or ones_sum(packet[:20]) != 0xFFFF:
            wrong.append(packet.hex(" ", 4)[:150])
    writer.case("checksums of answers", wrong[:3] if found else ["no answer was seen"])


def lists(writer, there):
    with there.server(LIST, "-n", "2001") as server:
        writer.case("a program is at the interface", [] if there.attached() else ["none"])
        for hops in ("0", "1", "64", "2000"):
            done = run(LIST, "walk", *TO, "-X", "-k", hops, "-r", "20")
            writer.case(f"a walk of {hops}", done.problems(0) + (
                [] if len(re.findall(rf"value {hops},", done.out)) == 2 and not done.err
                else [done.out, done.err]))
        done = run(LIST, "append", *TO, "-X", "-v", "77")
        writer.case("what cannot be there the server does", done.problems(
            0, "the new node is 2001 hops away\n", "not in the kernel: .* for warp_alloc"))
        done = run(LIST, "walk", *TO, "-X", "-k", "2001", "-r", "1")
        writer.case("and the kernel sees it", [] if done.out.count("value 77,") == 2 else
                    [done.out, done.err])
        done = run(ACTIVE, "run", "--address", FAR, "--port", PORT, "--in-kernel", OBJECT, "walk",
                   "list", "3000", "0")
        writer.case("an address that is none", done.problems(1, "", "outside of all regions"))
        checksums(writer)
        server.process.send_signal(signal.SIGTERM)
        finish(server.process)
    writer.case("nothing stays at the interface", [] if until(lambda: not there.attached())
                else ["a program is there"])


def sleepers(writer, there):
    """Requests are answered while the server's process sleeps, and while it is stopped."""
    with there.server(HASH, "-n", "1000") as server:
        run(HASH, "put", *TO, "-X", "5", "6")
        before = switches(server.process.pid)
        done = run(HASH, "get", *TO, "-X", "-r", "20000", "5")
        more = switches(server.process.pid) - before
        writer.case("20,000 answers wake nobody", done.problems(0) + (
            [] if more < 500 and done.out.startswith("6\n") else [f"{more} times", done.out]))
        client = start(HASH, "get", *TO, "-X", "-r", "400000", "5")
        time.sleep(0.3)
        running = client.poll() is None
        server.process.send_signal(signal.SIGSTOP)
        done = finish(client)
        server.process.send_signal(signal.SIGCONT)
        writer.case("nor need the process run", done.problems(0) + (
            [] if running and done.out.startswith("6\n") else [done.out, str(running)]))
        clients = [start(HASH, "put", *TO, "-X", "-r", "2000", str(i), str(i * i))
                   for i in range(10, 14)]
        problems = [problem for client in clients for problem in finish(client).problems(0)]
        got = [run(HASH, "get", *TO, str(i)).out.strip() for i in range(10, 14)]
        writer.case("several clients at once", problems + (
            [] if got == [str(i * i) for i in range(10, 14)] else got))
        server.process.send_signal(signal.SIGKILL)
        finish(server.process)
        writer.case("kill -9 takes the program away", [] if until(lambda: not there.attached())
                    else ["it is there"])


def trees(writer, there):
    with there.server(BTREE, "-n", "1000"):
        problems = []
        for key in ("1", "500", "1000"):
            near = run(BTREE, "get", *TO, "-X", key)
            problems += near.problems(0, run(BTREE, "get", *TO, key).out)
        writer.case("look-ups in a tree", problems)
        writer.case("a command for any program", commands(there))


def commands(there):
    """warp-active has programs of its own put there."""
    with_port = ("--address", FAR, "--port", PORT)
    listed = run(ACTIVE, "list", *with_port).out.split()
    done = run(ACTIVE, "run", *with_port, "--in-kernel", OBJECT, "walk", "btree", "0", "0")
    wrong = run(ACTIVE, "run", *with_port, "--in-kernel", OBJECT, "append", "btree", "0", "0")
    return done.problems(0) + wrong.problems(1, "", "nothing for warp_alloc") + (
        [] if "btree" in listed else listed)


def gone(writer, there):
    """The last test: the interface goes away beneath a server."""
    with there.server(LIST, "-n", "10") as server:
        ip("link", "del", "near")
        time.sleep(0.2)
        alive = server.process.poll() is None
        server.process.send_signal(signal.SIGTERM)
        writer.case("an interface that goes away", finish(server.process).problems(0) + (
            [] if alive else ["the server went with it"]))


def main():
    writer = tap.Writer()
    inside(writer)
    ip("link", "set", "lo", "up")
    with There() as there:
        with there.server(LIST) as server:
            done = None if server.port != "1" else finish(server.process)
        if done and any(words in done.err for words in NO_ARENA):
            writer.skip("all of it", "no BPF arena is to be had: " + done.err.strip())
            writer.finish()
        lists(writer, there)
        sleepers(writer, there)
        trees(writer, there)
        gone(writer, there)
    writer.finish()


if __name__ == "__main__":
    main()
