#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Servers whose host has a device that is made up (fake_rdma.c): who listens, and whom accept()
finds. device.py runs it.

    listen.py WHAT
"""
import contextlib
import ctypes
import errno
import faulthandler
import fcntl
import os
import queue
import resource
import select
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
import traceback
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent.parent))
from expect import error_of, expect  # noqa: E402

SOL_DDP, DDP_INFO = 5041, 6
TCP_ESTABLISHED, TCP_LISTEN = 1, 10
LOOP = "127.0.0.1"
LIMIT = 40
fake = ctypes.CDLL("libibverbs.so.1")
fake.fake_knock.restype = fake.fake_stir_at.restype = ctypes.c_bool


def kind_of(sock):
    return "device" if b"verbs\0" in sock.getsockopt(SOL_DDP, DDP_INFO, 512) else "kernel"


class Server:
    """A listener, and those who ask."""

    def __init__(self, addr=LOOP, family=socket.AF_INET, **how):
        self.sock = socket.create_server((addr, 0), family=family, **how)
        self.port = self.sock.getsockname()[1]
        self.clients = []

    def knock(self):
        return fake.fake_knock(self.port)

    def call(self):
        """By TCP: it waits for nobody."""
        self.clients.append(socket.create_connection((LOOP, self.port)))

    def accept(self):
        """Which of the two has been accepted."""
        sock, addr = self.sock.accept()
        with sock:
            expect(sock.getpeername(), addr)
            expect(sock.getsockname()[1], self.port)
            expect(sock.family, self.sock.family)
            name = addr[0].removeprefix("::ffff:")
            expect(name, LOOP)
            expect(len(addr), 4 if sock.family == socket.AF_INET6 else 2)
            return kind_of(sock)

    def is_empty(self):
        blocks = self.sock.getblocking()
        self.sock.setblocking(False)
        expect(error_of(self.sock.accept), "EAGAIN")
        self.sock.setblocking(blocks)

    def accepted_by_thread(self, then):
        """What accept() in a thread that sleeps has to say when @then is done."""
        said = []
        thread = threading.Thread(target=lambda: said.append(error_of(self.accept)))
        thread.start()
        await_sleep(thread.native_id)
        then()
        thread.join()
        return said[0]


def await_sleep(tid):
    while open(f"/proc/self/task/{tid}/stat").read().split()[2] != "S":
        pass


@contextlib.contextmanager
def waited_for(**how):
    """A server that is in a set, and the set."""
    server = Server(**how)
    with select.epoll() as epoll:
        epoll.register(server.sock, select.EPOLLIN)
        yield server, epoll


def await_event(server, epoll):
    expect(epoll.poll(LIMIT), [(server.sock.fileno(), select.EPOLLIN)])


def ready(server):
    """What poll(), select() and epoll say of it: the same."""
    poll = select.poll()
    poll.register(server.sock, select.POLLIN | select.POLLOUT)
    polled = [what for _, what in poll.poll(0)] == [select.POLLIN]
    expect(bool(select.select([server.sock], [], [], 0)[0]), polled)
    with select.epoll() as epoll:
        epoll.register(server.sock, select.EPOLLIN)
        expect(epoll.poll(0), [(server.sock.fileno(), select.EPOLLIN)] if polled else [])
    return polled


def turns():
    server = Server()
    server.sock.listen()
    expect(server.sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 1)[0], TCP_LISTEN)
    expect(server.sock.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN), 1)
    for _ in range(3):
        expect(server.knock(), True)
    for _ in range(4):
        server.call()
    expect([server.accept() for _ in range(7)],
           ["device", "kernel", "device", "kernel", "device", "kernel", "kernel"])
    server.is_empty()
    server.knock()
    expect(server.accept(), "device")


def plain():
    """In mode auto, to clients who know nothing of DDP, whoever speaks first."""
    server = Server()
    for turn in 1, 2:
        expect(server.knock(), True)
        server.call()
        kinds = set()
        for _ in range(2):
            sock = server.sock.accept()[0]
            kinds.add(kind_of(sock))
            if kind_of(sock) == "kernel":
                ends = (server.clients[-1], sock) if turn == 1 else (sock, server.clients[-1])
                for one, other in ends, ends[::-1]:
                    one.sendall(b"octets")
                    expect(other.recv(6, socket.MSG_WAITALL), b"octets")
            sock.close()
        expect(kinds, {"device", "kernel"})


def waits():
    server = Server()
    for ask in server.knock, server.call:
        expect(ready(server), False)
        ask()
        expect(ready(server), True)
        server.accept()
        expect(ready(server), False)
        expect(server.accepted_by_thread(ask), "none")
    server.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, struct.pack("ll", 0, 1000))
    expect(error_of(server.accept), "EAGAIN")


def signals():
    """While accept() sleeps, of those that interrupt it and of those that do not."""
    server = Server()
    signal.signal(signal.SIGALRM, lambda *_: None)
    for interrupts in True, False:
        signal.siginterrupt(signal.SIGALRM, interrupts)
        signal.setitimer(signal.ITIMER_REAL, 0.02, 0.02)
        later = threading.Timer(0.5, server.knock)
        later.start()
        expect(server.accept(), "device")
        later.join()
    signal.setitimer(signal.ITIMER_REAL, 0)


def at_the_limit():
    """Without a descriptor a client waits, and there are some for all that it takes or for none."""
    server = Server()
    server.sock.setblocking(False)
    resource.setrlimit(resource.RLIMIT_NOFILE, (200, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
    others = []
    while error_of(lambda: others.append(os.dup(0))) != "EMFILE":
        pass
    server.knock()
    tries = 0
    while (said := error_of(lambda: others.append(server.sock.accept()[0]))) == "EMFILE":
        expect(ready_by_poll(server), True)
        os.close(others.pop(0))
        tries += 1
    expect(said, "none")
    expect(tries > 2, True)
    expect(error_of(others[-1].send, b"x"), "none")
    expect(kind_of(others[-1]), "device")
    expect((count_of("answered"), count_of("refused")), (1, 0))


def keeps():
    """SO_KEEPALIVE is the listener's, as with TCP."""
    server = Server()
    server.sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    server.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, 1)
    server.knock()
    with server.sock.accept()[0] as sock:
        expect(sock.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE), 1)
        expect(sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE), 1)
        while not count_of("nothings"):
            select.select([sock], [], [], 5)


def ready_by_poll(server):
    return bool(select.select([server.sock], [], [], 0)[0])


def sets():
    """In a set before it listens; edges; one that only one waiter is to hear of; MOD, DEL."""
    sock = socket.socket()
    sock.bind((LOOP, 0))
    with select.epoll() as epoll, select.epoll() as other:
        epoll.register(sock, select.EPOLLIN | select.EPOLLET)
        epoll.poll(0)
        sock.listen()
        fake.fake_knock(sock.getsockname()[1])
        expect(epoll.poll(LIMIT), [(sock.fileno(), select.EPOLLIN)])
        expect(epoll.poll(0), [])
        fake.fake_knock(sock.getsockname()[1])
        expect(epoll.poll(LIMIT), [(sock.fileno(), select.EPOLLIN)])
        other.register(sock, select.EPOLLIN | select.EPOLLEXCLUSIVE)
        expect(other.poll(0), [(sock.fileno(), select.EPOLLIN)])
        expect(error_of(epoll.register, sock), "EEXIST")
        epoll.modify(sock, select.EPOLLOUT)
        expect(epoll.poll(0), [])
        epoll.unregister(sock)
        expect(error_of(epoll.modify, sock, 0), "ENOENT")


def duplicates():
    server = Server()
    first = server.sock
    server.sock = first.dup()
    first.close()
    server.knock()
    server.call()
    expect({server.accept(), server.accept()}, {"device", "kernel"})
    server.sock.close()
    expect(server.knock(), False)


def numbers():
    """Of one listener each number is a member of its own, as long as one of them is open."""
    server = Server()
    again = server.sock.dup()
    both = {server.sock.fileno(), again.fileno()}
    with select.epoll() as epoll:
        expect(error_of(epoll.modify, again, 0), "ENOENT")
        for sock in server.sock, again:
            expect(error_of(epoll.register, sock, select.EPOLLIN), "none")
            expect(error_of(epoll.register, sock, select.EPOLLIN), "EEXIST")
        server.knock()
        expect({fd for fd, _ in epoll.poll(LIMIT)}, both)
        epoll.modify(again, 0)
        expect(epoll.poll(0), [(server.sock.fileno(), select.EPOLLIN)])
        epoll.modify(again, select.EPOLLIN)
        epoll.unregister(server.sock)
        expect(epoll.poll(0), [(again.fileno(), select.EPOLLIN)])
        expect(error_of(epoll.unregister, server.sock), "ENOENT")
        epoll.register(server.sock, select.EPOLLIN)
        server.sock.close()
        expect({fd for fd, _ in epoll.poll(0)}, both)
        server.sock = again
        expect(server.accept(), "device")
        expect(epoll.poll(0), [])
    again.close()
    expect(server.knock(), False)


def interrupted():
    """shutdown() ends it for both, and who sleeps in accept() is told."""
    server = Server()
    server.sock.shutdown(socket.SHUT_WR)
    expect(server.knock(), True)
    expect(server.accept(), "device")
    expect(server.accepted_by_thread(lambda: server.sock.shutdown(socket.SHUT_RD)), "EINVAL")
    expect(server.knock(), False)
    expect(error_of(server.call), "ECONNREFUSED")
    expect(error_of(server.accept), "EINVAL")
    server.sock.listen()
    expect(server.sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 1)[0], TCP_LISTEN)


def in_child(what):
    number = os.fork()
    if not number:
        try:
            what()
            os._exit(0)
        except BaseException:
            traceback.print_exc()
            os._exit(1)
    expect(os.waitstatus_to_exitcode(os.waitpid(number, 0)[1]), 0)


def forks_early():
    """Also where it is in a set already, and a thread sleeps there."""
    with waited_for() as (server, epoll):
        expect(server.accepted_by_thread(
            lambda: (in_child(lambda: None), server.call())), "none")
        expect(server.knock(), False)
        server.call()
        await_event(server, epoll)
        in_child(lambda: expect(server.accept(), "kernel"))
        expect(epoll.poll(0), [])


def forks_late():
    """One that serves and is waited for stays the parent's; its child has the kernel's."""
    with waited_for() as (server, epoll):
        server.knock()
        expect(server.accept(), "device")
        server.call()
        in_child(lambda: (expect(server.accept(), "kernel"), server.is_empty()))
        expect(server.knock(), True)
        server.call()
        await_event(server, epoll)
        expect({server.accept(), server.accept()}, {"device", "kernel"})
        expect(fcntl.fcntl(server.sock, fcntl.F_GETFL) & os.O_NONBLOCK, 0)
        expect(epoll.poll(0), [])
    # Who accepts and then forks wants the child to serve
    other = Server()
    other.knock()
    expect(other.accept(), "device")
    in_child(lambda: None)
    expect(other.knock(), False)


def count_of(what):
    return ctypes.c_int.in_dll(fake, f"fake_{what}").value


def is_lost(sock):
    """Its peer has been refused, and comes again by TCP."""
    with sock:
        expect([what for _, what in polled(sock)],
               [select.POLLIN | select.POLLHUP | select.POLLERR])
        expect(error_of(sock.recv, 1), "ECONNRESET")
        expect(sock.recv(1), b"")
        expect(error_of(sock.getpeername), "ENOTCONN")


def polled(sock):
    poll = select.poll()
    poll.register(sock, select.POLLIN)
    return poll.poll(LIMIT)


def goes_on(server, epoll):
    """By software alone, also where a set has it."""
    expect(count_of("refused"), 1)
    expect(count_of("answered"), 0)
    server.call()
    await_event(server, epoll)
    expect(server.accept(), "kernel")
    expect(epoll.poll(0), [])
    expect(server.knock(), False)


@contextlib.contextmanager
def in_time():
    """A machine may be so slow that the peer is answered by then: once more, in a new process."""
    tries = int(os.environ.get("TRIES", "5"))
    try:
        yield
    except (AssertionError, OSError):
        if not count_of("answered") or not tries:
            raise
        traceback.print_exc()
        os.environ["TRIES"] = str(tries - 1)
        os.execv(sys.executable, [sys.executable, *sys.argv])


@in_time()
def given(gives, **how):
    """A connection that is accepted, and then another process is to have it, by @gives."""
    with waited_for(**how) as (server, epoll):
        server.knock()
        await_event(server, epoll)
        sock = server.sock.accept()[0]
        expect(sock.getpeername()[0].removeprefix("::ffff:"), LOOP)
        expect(sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 1)[0], TCP_ESTABLISHED)
        gives(sock)
        goes_on(server, epoll)


def forks_for_it():
    given(lambda sock: in_child(lambda: is_lost(sock)))


def forks_for_six():
    given(lambda sock: in_child(lambda: is_lost(sock)), addr="::", family=socket.AF_INET6,
          dualstack_ipv6=True)


def forks_when_it_is_in_a_set():
    with select.epoll() as epoll:
        def gives(sock):
            epoll.register(sock, select.EPOLLIN)
            in_child(lambda: None)
            expect(epoll.poll(LIMIT), [(sock.fileno(), select.EPOLLIN | select.EPOLLHUP |
                                        select.EPOLLERR)])
            is_lost(sock)
        given(gives)


def passes_it():
    def gives(sock):
        ours, theirs = socket.socketpair()
        socket.send_fds(ours, [b"x"], [sock.fileno()])
        sock.close()
        is_lost(socket.socket(fileno=socket.recv_fds(theirs, 1, 1)[1][0]))
    given(gives)


TAKES = """
import socket, sys
sock = socket.socket(fileno=0)
try:
    sys.exit(bool(sock.recv(1)) + 2)
except ConnectionResetError:
    pass
"""


def spawns_with_it():
    def gives(sock):
        number = os.posix_spawn(sys.executable, [sys.executable, "-c", TAKES], os.environ,
                                file_actions=[(os.POSIX_SPAWN_DUP2, sock.fileno(), 0)])
        expect(os.waitstatus_to_exitcode(os.waitpid(number, 0)[1]), 0)
        sock.close()
    given(gives)


def lends_it():
    def gives(sock):
        sock.set_inheritable(True)
        expect(os.system(f"exec {sys.executable} -c '{TAKES}' <&{sock.fileno()}"), 0)
        sock.close()
    given(gives)


@in_time()
def executes_with_it():
    server = Server()
    server.knock()
    sock = server.sock.accept()[0]
    os.dup2(sock.fileno(), 0)
    os.execv(sys.executable, [sys.executable, "-c", TAKES])


def answers():
    """By which calls the peer hears of it; or soon, by none."""
    def waits(sock):
        with select.epoll() as epoll:
            epoll.register(sock, select.EPOLLIN)
            epoll.poll(0)

    def reads(sock):
        sock.setblocking(False)
        expect(error_of(sock.recv, 1), "EAGAIN")

    def sleeps(sock):
        while not count_of("answered") > before:
            time.sleep(0.01)

    server = Server()
    for calls in (waits, reads, sleeps, lambda sock: select.select([sock], [], [], 0),
                  lambda sock: sock.send(b"x"), lambda sock: sock.close(),
                  lambda sock: sock.shutdown(socket.SHUT_WR)):
        before = count_of("answered")
        server.knock()
        with server.sock.accept()[0] as sock:
            calls(sock)
            expect(count_of("answered"), before + 1)
            in_child(lambda: None)
        expect(count_of("refused"), 0)
        server = Server()


ACCEPTS = """
import socket, sys
listener = socket.socket(fileno=int(sys.argv[1]))
print("accepts", flush=True)
while True:
    listener.accept()[0].close()
"""


def given_away():
    """To a program that was started with the socket: it takes connections that were there at a
    look, and nobody waits for the next one away from the device."""
    server = Server()
    told = queue.Queue()

    def accepts():
        while True:
            with server.sock.accept()[0] as sock:
                told.put(kind_of(sock))

    fd = server.sock.fileno()
    with subprocess.Popen([sys.executable, "-c", ACCEPTS, str(fd)], pass_fds=[fd],
                          stdout=subprocess.PIPE) as other:
        try:
            other.stdout.readline()
            threading.Thread(target=accepts, daemon=True).start()
            for _ in range(300):
                socket.create_connection((LOOP, server.port)).close()
                time.sleep(0.001)
                server.knock()
                while told.get(timeout=LIMIT / 2) != "device":
                    pass
            expect(other.poll(), None)
        finally:
            other.kill()


def confined():
    """A filter that lets everything through is one, too."""
    server = Server()
    libc = ctypes.CDLL(None)
    lets = ctypes.create_string_buffer(struct.pack("HBBI", 6, 0, 0, 0x7fff0000))
    program = struct.pack("HxxxxxxP", 1, ctypes.addressof(lets))
    expect(libc.prctl(38, 1, 0, 0, 0), 0)  # no new privileges
    expect(libc.prctl(22, 2, program, 0, 0), 0)
    expect(server.knock(), False)
    server.call()
    expect(server.accept(), "kernel")


def port_twice():
    """The device's port is the first one's; the kernel's is both's."""
    first = Server(reuse_port=True)
    with socket.socket() as second:
        second.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        second.bind((LOOP, first.port))
        second.listen()
        first.knock()
        expect(ready(first), True)
        expect(select.select([second], [], [], 0)[0], [])
    expect(first.accept(), "device")


def everywhere():
    for server in Server(""), Server("::", socket.AF_INET6, dualstack_ipv6=True):
        server.knock()
        server.call()
        expect({server.accept(), server.accept()}, {"device", "kernel"})
    # As Java has its IPv4 addresses
    server = Server("::ffff:" + LOOP, socket.AF_INET6, dualstack_ipv6=True)
    expect(server.knock(), True)
    expect(server.accept(), "device")
    # Without a bind() the kernel chooses the port when it listens
    with socket.socket() as sock:
        sock.listen()
        expect(fake.fake_knock(sock.getsockname()[1]), True)


def kernel_alone():
    server = Server()
    expect(server.knock(), False)
    server.call()
    expect(server.accept(), "kernel")


def device_alone():
    server = Server()
    expect(error_of(server.call), "ECONNREFUSED")
    expect(server.sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 1)[0], TCP_LISTEN)
    expect(server.sock.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN), 1)
    expect(ready(server), False)
    server.knock()
    expect(ready(server), True)
    expect(server.accept(), "device")
    expect(server.accepted_by_thread(server.knock), "none")
    server.sock.listen()
    expect(server.accepted_by_thread(lambda: server.sock.shutdown(socket.SHUT_RDWR)), "EINVAL")
    expect(server.knock(), False)


def lacks():
    """Without memory for an event a client waits, and the program is told."""
    server = Server()
    server.knock()
    fake.fake_refuse(errno.ENOMEM)
    expect(error_of(server.accept), "ENOMEM")
    fake.fake_refuse(0)
    expect(server.accept(), "device")


def refused():
    """As behind setuid(), no event is to be had: software serves the next client."""
    for blocks in False, True:
        with waited_for() as (server, epoll):
            server.knock()
            expect(server.accept(), "device")
            server.knock()
            fake.fake_refuse(errno.EACCES)
            await_event(server, epoll)
            if blocks:
                expect(server.accepted_by_thread(lambda: calls_behind(server)), "none")
            else:
                server.is_empty()
            expect(ready(server), False)
            expect(epoll.poll(0), [])
            expect(server.knock(), False)
            server.call()
            await_event(server, epoll)
            expect(server.accept(), "kernel")
        fake.fake_refuse(0)


def calls_behind(server):
    """When nobody is at the device any more, and the kernel's listener is there."""
    listens = f":{server.port:04X} 00000000:0000 0A"
    while ready_by_poll(server) or listens not in Path("/proc/net/tcp").read_text():
        time.sleep(0.01)
    server.call()


def lowest_free():
    number = os.dup(0)
    os.close(number)
    return number


def stirred():
    """An event that is no client's, while accept() sleeps: it has no number open then."""
    server = Server()

    def stirs():
        fake.fake_stir_at(server.port)
        until = time.monotonic() + LIMIT / 2
        while ready_by_poll(server) or lowest_free() != before:
            expect(time.monotonic() < until, True)
            time.sleep(0.01)
        server.knock()

    before = lowest_free()
    expect(server.accepted_by_thread(stirs), "none")


def alone_forks_late():
    """The device has the port alone, and is the parent's: its child has nobody, and is told."""
    with waited_for() as (server, epoll):
        server.knock()
        expect(server.accept(), "device")
        in_child(lambda: told_by_both(server, "EXDEV"))
        server.knock()
        in_child(lambda: told_by_both(server, "EXDEV"))
        await_event(server, epoll)
        expect(server.accept(), "device")


def told_by_both(server, what):
    for blocks in False, True:
        server.sock.setblocking(blocks)
        expect(error_of(server.accept), what)


def alone_forks():
    with waited_for() as (server, epoll):
        in_child(lambda: None)
        expect(server.knock(), False)
        server.call()
        await_event(server, epoll)
        expect(server.accept(), "kernel")


NEXT = """
import socket, sys
listener = socket.socket(fileno=int(sys.argv[1]))
with socket.socket() as client:
    client.setblocking(False)
    client.connect_ex(listener.getsockname())
    listener.accept()[0].close()
"""


def alone_executes():
    server = Server()
    server.sock.set_inheritable(True)
    os.execv(sys.executable, [sys.executable, "-c", NEXT, str(server.sock.fileno())])


if __name__ == "__main__":
    if "TRIES" in os.environ:
        Path(os.environ["WARPSOCK_REPORT"]).unlink(missing_ok=True)
    faulthandler.dump_traceback_later(LIMIT, exit=True)  # where it hangs
    globals()[sys.argv[1]]()
