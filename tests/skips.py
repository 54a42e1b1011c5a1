# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Reasons for which a case may be skipped although every package is installed.

./dev test installs what the tests use. A skip that is left is about the machine, or is known to
be so on every machine; any other is a package that is missing in ./dev's list, and has failed.
"""
import re

import tap

# Beginnings of reasons, by what is behind them
MAY = {
    "the user": (
        "not root", "only root ", "slurmd needs root", "to give a file away is for the superuser",
        "no network namespaces without root", "no network namespaces (needs root)",
        "no right to capture on lo", "no capture here: ",
    ),
    "the kernel, or the sandbox around it": (
        "no mount namespace to be had", "no mount namespace is to be had",
        "no mount of our own: ", "no PID namespace is to be had", "no user namespace is to be had",
        "no network of its own is to be had",
        "no network namespace with a TUN device is to be had", "no namespace or TAP: ",
        "this host has no /dev/net/tun", "the kernel gives no ring",
        "the kernel's buffers hold too little", "this machine has too little memory",
        "threads cannot be traced here", "this machine has no IPv6",
        "the kernel has no nftables",
        "the kernel does not allow bpf(2)",
        "no 32-bit programs on this processor", "no 32-bit programs on this kernel",
    ),
    "the host's set-up": (
        "this host has RDMA devices", "this host allows too few descriptors",
        "/etc/warpsock.conf is there",
        "no headers of Linux 6.12 here",
    ),
    "the processor": ("the machine has no JIT", "this machine has one processor"),
    "a device, of those that one test is run over": (
        "the device ", "a device ", "what a device does ", "no queue of a device's overflows",
    ),
    "another program, on every machine": (
        "Wireshark: ", "its server takes a Request for a client's cookie",
    ),
}
KNOWN = re.compile("|".join(re.escape(words) for some in MAY.values() for words in some))


def judged(case):
    """The case; failed if it was skipped for a reason that a machine cannot have."""
    if case.result != "skipped" or KNOWN.match(case.reason):
        return case
    return tap.Case(case.name, "failed", [
        f"skipped: {case.reason}",
        "./dev installs what the tests use, and tests/skips.py has what a machine may lack"])
