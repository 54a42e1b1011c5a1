#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What a connection is in its first moments, as its program sees it.

    moments.py --list
    moments.py CASE         END ACTION LOOK, joined by dots

One END of a new connection, client or server, does ACTION at once. The program of the other end
looks at its socket after LOOK seconds, or never, or has not even accepted it. Both say what they
see; nothing that depends on who is first is said.
"""
import array
import errno
import fcntl
import os
import select
import signal
import socket
import struct
import sys
import termios
import time

SOON = 1.5  # what TCP does at once takes less, on a busy machine, too
LOOKS = ("0", "0.05", "3", "never")
EVENTS = ((select.POLLIN, "in"), (select.POLLOUT, "out"), (select.POLLRDHUP, "rdhup"),
          (select.POLLHUP, "hup"), (select.POLLERR, "err"))


def say(*words):
    print(*words, flush=True)


def outcome(call, *args):
    try:
        return call(*args)
    except socket.timeout:
        return "waits"
    except OSError as error:
        return errno.errorcode[error.errno]


def names(events):
    return "+".join(name for bit, name in EVENTS if events & bit) or "nothing"


def polled(sock, events, limit):
    poller = select.poll()
    poller.register(sock, events)
    got = poller.poll(int(limit * 1000))
    return names(got[0][1]) if got else "nothing"


def unread(sock):
    number = array.array("i", [0])
    fcntl.ioctl(sock, termios.FIONREAD, number)
    return number[0]


def received(sock, limit=0.3):
    sock.settimeout(limit)
    return outcome(sock.recv, 100)


# --- what one end does; True: the connection is not closed by the case's end ---

def act_idle(sock):
    say("writable:", "out" in polled(sock, select.POLLOUT, SOON))
    say("readable:", polled(sock, select.POLLIN, 0))
    say("error:", sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR), "unread:", unread(sock))
    say("peer:", len(sock.getpeername()), sock.getpeername()[0])
    say("peek:", outcome(sock.recv, 1, socket.MSG_PEEK | socket.MSG_DONTWAIT))
    say("nothing:", outcome(sock.send, b""))


def act_read(sock):
    say("reads:", received(sock))


def act_write(sock):
    sock.settimeout(SOON)
    say("wrote:", outcome(sock.send, b"hello"))


def act_write_unblocked(sock):
    sock.setblocking(False)
    say("writable:", "out" in polled(sock, select.POLLOUT, SOON))
    say("wrote:", outcome(sock.send, b"hello"))
    sock.setblocking(True)


def act_write_much(sock):
    sock.settimeout(SOON)
    say("wrote:", outcome(sock.sendall, bytes(60000)))


def act_write_then_read(sock):
    act_write(sock)
    act_read(sock)


def act_shutdown_write(sock):
    say("shutdown:", outcome(sock.shutdown, socket.SHUT_WR))
    say("writes:", outcome(sock.send, b"x", socket.MSG_NOSIGNAL))
    say("writable:", "out" in polled(sock, select.POLLOUT, 0))


def act_shutdown_write_behind_octets(sock):
    act_write(sock)
    act_shutdown_write(sock)


def act_shutdown_read(sock):
    say("shutdown:", outcome(sock.shutdown, socket.SHUT_RD))
    say("polled:", polled(sock, select.POLLIN | select.POLLRDHUP, 0))
    say("reads:", received(sock))


def act_shutdown_both(sock):
    say("shutdown:", outcome(sock.shutdown, socket.SHUT_RDWR))
    say("polled:", polled(sock, select.POLLIN | select.POLLOUT | select.POLLRDHUP, 0))
    say("reads:", received(sock))
    say("writes:", outcome(sock.send, b"x", socket.MSG_NOSIGNAL))


def act_close(sock):
    pass


def act_close_hard(sock):
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


def act_close_lingering(sock):
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 5))
    sock.settimeout(SOON)
    say("wrote:", outcome(sock.send, b"hello"))
    begin = time.monotonic()
    sock.close()
    say("closed soon:", time.monotonic() - begin < SOON)


def act_dup2(sock):
    null = os.open("/dev/null", os.O_RDWR)
    os.dup2(null, sock.fileno())
    os.close(null)


def in_child(work):
    pid = os.fork()
    if not pid:
        try:
            work()
        finally:
            os._exit(0)
    os.waitpid(pid, 0)


def act_fork(sock):
    def write():
        sock.settimeout(SOON)
        say("wrote:", outcome(sock.send, b"child"))
    in_child(write)
    act_write(sock)


def act_fork_and_close(sock):
    pid = os.fork()
    if not pid:
        time.sleep(0.1)
        sock.settimeout(SOON)
        outcome(sock.send, b"child")
        sock.close()
        os._exit(0)
    sock.close()
    os.waitpid(pid, 0)


def act_exec(sock):
    code = "import os, sys; os.write(int(sys.argv[1]), b'program')"
    sock.setblocking(True)
    os.set_inheritable(sock.fileno(), True)
    sys.stdout.flush()
    in_child(lambda: os.execv(sys.executable, [sys.executable, "-c", code, str(sock.fileno())]))


def act_send_away(sock):
    ours, theirs = socket.socketpair()
    pid = os.fork()
    if not pid:
        ours.close()
        sock.close()
        fd = socket.recv_fds(theirs, 1, 1)[1][0]
        got = socket.socket(fileno=fd)
        got.settimeout(SOON)
        outcome(got.send, b"receiver")
        got.close()
        os._exit(0)
    theirs.close()
    socket.send_fds(ours, [b"x"], [sock.fileno()])
    sock.close()
    os.waitpid(pid, 0)


def epoll_told(sock, flags):
    with select.epoll() as poller:
        poller.register(sock, select.EPOLLOUT | flags)
        first = poller.poll(SOON, 4)
        second = poller.poll(0, 4)
        say("told:", *["out" if got and got[0][1] & select.EPOLLOUT else "nothing"
                       for got in (first, second)])


def act_epoll_level(sock):
    epoll_told(sock, 0)


def act_epoll_edge(sock):
    epoll_told(sock, select.EPOLLET)


def act_epoll_once(sock):
    epoll_told(sock, select.EPOLLONESHOT)


def act_exit(sock):
    act_write(sock)
    say("exits")
    sys.stdout.flush()
    sys.exit(0)  # by whoever does it: with the connection open


ACTIONS = {name[4:].replace("_", "-"): act for name, act in list(globals().items())
           if name.startswith("act_")}
# What reset and octets meet is the network's matter: only the end that acts is compared
TOLD_BY_ONE = {"close-hard"}


# --- the other end ---

def look(sock):
    """All that comes, and how it ends."""
    data, end = b"", "open"
    sock.settimeout(8)
    while True:
        got = outcome(sock.recv, 70000)
        if not isinstance(got, bytes) or not got:
            end = got or "the end"
            break
        data += got
    return f"sees: {data[:20]} ({len(data)}) {end}"


def connected(port):
    sock = socket.socket()
    begin = time.monotonic()
    sock.connect(("127.0.0.1", port))
    say("connected soon:", time.monotonic() - begin < SOON)
    return sock


def sleep_for(when):
    if when in ("never", "unaccepted"):
        signal.pause()
    time.sleep(float(when))


def as_client(listener, when, act):
    """A listener of its own process a client would not wait for."""
    port = listener.getsockname()[1]
    listener.close()
    sock = connected(port)
    if act:
        say("connect again:", outcome(sock.connect, ("127.0.0.1", port)))
        act(sock)
        sock.close()
        return
    sleep_for(when)
    say(look(sock))


def as_server(listener, when, act):
    if when == "unaccepted":
        sleep_for(when)
    sock = listener.accept()[0]
    if act:
        act(sock)
        sock.close()
        return
    sleep_for(when)
    say(look(sock))


def part(path, work, *args):
    """In a process of its own, whose words go to a file."""
    pid = os.fork()
    if pid:
        return pid
    out = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    os.dup2(out, 1)
    os.close(out)
    status = 1
    try:
        work(*args)
        status = 0
    except SystemExit as end:
        sys.stdout.flush()
        raise end
    finally:
        sys.stdout.flush()
        if status:
            sys.stderr.flush()
    sys.exit(status)


def ended(pid, limit):
    for _ in range(int(limit * 50)):
        got, status = os.waitpid(pid, os.WNOHANG)
        if got:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.02)
    return "too late"


def play(case, folder):
    end, action, when = case.split(".", 2)
    act = ACTIONS[action]
    listener = socket.create_server(("127.0.0.1", 0))
    paths = {name: os.path.join(folder, name) for name in ("client", "server")}
    pids = {"server": part(paths["server"], as_server, listener, when,
                           act if end == "server" else None),
            "client": part(paths["client"], as_client, listener, when,
                           act if end == "client" else None)}
    other = "client" if end == "server" else "server"
    listener.close()
    begin = time.monotonic()
    status = ended(pids[end], 20)
    print(end, "ends with", status, "soon" if time.monotonic() - begin < 7 else "late")
    if when in ("never", "unaccepted"):
        time.sleep(0.1)
        os.kill(pids[other], signal.SIGKILL)
        os.waitpid(pids[other], 0)
    else:
        status = ended(pids[other], 20)
        if action not in TOLD_BY_ONE:
            print(other, "ends with", status)
    for name in (end, other):
        if name == end or action not in TOLD_BY_ONE:
            with open(paths[name]) as said:
                print(name, "says", *said.read().splitlines(), sep="\n  ")


def cases():
    for end in ("client", "server"):
        for action in ACTIONS:
            for when in LOOKS + (("unaccepted",) if end == "client" else ()):
                yield f"{end}.{action}.{when}"


def main():
    if sys.argv[1:] == ["--list"]:
        print("\n".join(cases()))
        return
    import tempfile
    with tempfile.TemporaryDirectory(prefix="warpsock-moments-") as folder:
        pid = os.getpid()
        try:
            play(sys.argv[1], folder)
        finally:
            if os.getpid() != pid:
                sys.stdout.flush()
                os._exit(sys.exc_info()[1].code if isinstance(sys.exc_info()[1], SystemExit)
                         else 1)


if __name__ == "__main__":
    main()
