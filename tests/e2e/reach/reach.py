#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Every name of wrap.list is reached, nothing else is exported, and what is not ours passes.

reach.py LIBRARY PASS LAZY NOW NOPLT: LIBRARY is the interposer, the others are programs of this
folder, the last three the same one in the ways that a program may be bound.
"""
import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "tests"))
sys.path.insert(0, str(ROOT / "preload"))
import tap  # noqa: E402
import wrap  # noqa: E402

LIBC = "/lib/x86_64-linux-gnu/libc.so.6"
# What else libc may call the same function
FORMS = ("__{}_chk", "{}64", "__{}", "{}_unlocked", "__{}_unlocked_chk")
# Names that may be called in earnest
CONTROL = ("read", "__recv_chk", "sendmsg", "epoll_wait", "listen")
# Without one of these a program goes past the library, whatever the list says; tee, copy_file_range
# and quick_exit, and vfork, whose child changes no table, are not among them (docs/processes.md)
LEAST = set("""
    socket bind listen accept accept4 connect shutdown getsockname getpeername getsockopt setsockopt
    close close_range closefrom dup dup2 dup3 fcntl fcntl64 ioctl
    read readv preadv2 preadv64v2 recv recvfrom recvmsg recvmmsg
    write writev pwritev2 pwritev64v2 send sendto sendmsg sendmmsg sendfile sendfile64 splice
    __read_chk __recv_chk __recvfrom_chk __poll_chk __ppoll_chk __fgets_chk __fread_chk
    __fprintf_chk __vfprintf_chk __dprintf_chk __vdprintf_chk
    poll ppoll select pselect
    epoll_create epoll_create1 epoll_ctl epoll_wait epoll_pwait epoll_pwait2
    aio_read aio_read64 aio_write aio_write64 aio_suspend aio_suspend64 aio_cancel aio_cancel64
    lio_listio lio_listio64
    fdopen freopen freopen64 fileno fileno_unlocked fclose fflush fread fwrite fgets fputs getline
    getdelim fprintf vfprintf dprintf vdprintf setvbuf
    sigaction signal sigset sysv_signal bsd_signal ssignal siginterrupt pthread_cancel
    exit _exit _Exit abort fork _Fork clone daemon forkpty
    execl execle execlp execv execve execveat execvp execvpe fexecve posix_spawn posix_spawnp popen
    system prctl setrlimit setrlimit64 prlimit prlimit64 syscall
""".split())
# What stands before libc's function when a descriptor is not ours: one look at the table
INSTRUCTIONS_MAX = 20
# Behind libc's function there may be descriptors in what it took in
TOOK_MAX = {"recvmsg": 30, "recvmmsg": 80}


def run(*command, preload=None):
    env = dict(os.environ, WARPSOCK_USE="use tcp * * *:*")
    if preload:
        env["LD_PRELOAD"] = preload
    done = subprocess.run(command, capture_output=True, text=True, env=env, timeout=200)
    return done.stdout if done.returncode == 0 else f"failed {done.returncode} {done.stderr}\n"


def exported(path):
    """Names that others can bind to, without those that only libc's own parts may use."""
    lines = run("nm", "-D", "--defined-only", path).splitlines()
    return {m[1] for m in (re.match(r"\w* [TWiVDB] (\w+)(?!.*GLIBC_PRIVATE)", line)
                           for line in lines) if m}


def reached(writer, library, program, names):
    out = run(program, library, preload=library).splitlines()
    bad = [line for line in out if not line.endswith(" reached")]
    if {line.split()[0] for line in out} != names:
        bad.append("not every name was tried")
    writer.case(f"every name is reached from {Path(program).name}", bad)


def bound(writer, program, now):
    flags = run("readelf", "-d", program)
    is_now = "BIND_NOW" in flags or re.search(r"FLAGS_1.*NOW", flags) is not None
    writer.case(f"{Path(program).name} is bound {'at once' if now else 'when it calls'}",
                [] if is_now == now else [flags])


def passes(writer, library, program):
    bad = []
    lines = run(program, library, preload=library).splitlines()
    for line in lines:
        match = re.match(r"(\w+) (\d+) (\w+)$", line)
        name, count, way = match.groups() if match else ("", "0", "")
        most = TOOK_MAX.get(name, INSTRUCTIONS_MAX)
        if not 0 < int(count) <= most or (way != "straight" and name not in TOOK_MAX):
            bad.append(line)
    if len(lines) < 20:
        bad.append("hardly a name was tried")
    writer.case("a socket that is not in DDP mode pays for one look at the table", bad)


def main():
    library, pass_exe, lazy, now, noplt = (os.path.realpath(arg) for arg in sys.argv[1:])
    calls = wrap.parse(ROOT / "preload/wrap.list")
    others = {call.name for call in calls if call.kind == "other"}
    names = {call.name for call in calls} - others
    theirs = exported(LIBC)
    writer = tap.Writer()
    writer.case("nothing but the names of wrap.list is exported, and a helper's beginning",
                sorted(exported(library) ^ (names | others | {wrap.HELPER})))
    writer.case("the least that a library of sockets must take is in the list",
                sorted(LEAST - names))
    writer.case("libc has every name", sorted(names - theirs))
    forms = {form.format(name) for name in names for form in FORMS}
    writer.case("libc's other forms of a name are in the list", sorted((forms & theirs) - names))
    for program in (lazy, now, noplt):
        bound(writer, program, program != lazy)
        reached(writer, library, program, names)
    without = run(now, library, *CONTROL).splitlines()
    writer.case("without the library none is reached",
                [f"{name}: {without}" for name in CONTROL if f"{name} passed by" not in without])
    passes(writer, library, pass_exe)
    writer.finish()


if __name__ == "__main__":
    main()
