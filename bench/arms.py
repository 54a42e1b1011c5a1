# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What is compared: each arm is a way to run both ends of a benchmark, and one row here.

The first arm is the one that the others are put in relation to. An arm that this build or this
machine does not have is left out, and the reason is told.
"""
import os
import shutil
import subprocess
from dataclasses import dataclass, field

DDP, TCP = "ddp", "tcp"


@dataclass(frozen=True)
class Arm:
    key: str
    title: str
    launch: tuple = None  # words of `warpsock run`; None: without the launcher
    env: dict = field(default_factory=dict)
    carried: str = None  # what its connections have to be, by the interposer's report
    quick: bool = True  # is it part of --quick?


BASE = Arm("tcp", "plain TCP")
ON = ("--all", "--mode", "on")
ARMS = [
    BASE,
    Arm("ddp", "DDP", ON, carried=DDP),
    Arm("modespin", "TCP, --mode spin", ("--all", "--mode", "spin"), carried=TCP),
    Arm("latency", "DDP, --profile latency", ("--profile", "latency", *ON), carried=DDP,
        quick=False),
    Arm("nocrc", "DDP, no CRC", ON, {"WARPSOCK_CRC": "off"}, carried=DDP, quick=False),
    Arm("cpu", "DDP, --profile cpu", ("--profile", "cpu", *ON), carried=DDP, quick=False),
]


@dataclass(frozen=True)
class Foreign:
    """Another system's own benchmark, beside ours; for messages only."""
    key: str
    title: str
    program: str
    package: str
    latency: str = None  # its test of latency, and of bandwidth
    bandwidth: str = None


FOREIGN = [
    Foreign("ucx-tag", "UCX tag, tcp", "ucx_perftest", "ucx-utils", "tag_lat", "tag_bw"),
    Foreign("ucx-put", "UCX put, tcp", "ucx_perftest", "ucx-utils", "ucp_put_lat", "ucp_put_bw"),
    Foreign("ucx-get", "UCX get, tcp", "ucx_perftest", "ucx-utils", "ucp_get", "ucp_get"),
    Foreign("ucx-am", "UCX am, tcp", "ucx_perftest", "ucx-utils", "ucp_am_lat", "ucp_am_bw"),
    Foreign("fi", "libfabric msg, tcp", "fi_pingpong", "libfabric-bin", "msg"),
]


def reason(warpsock, arm):
    """Why this arm cannot be had; None: it can."""
    if arm.launch is None:
        return None
    try:
        done = subprocess.run([warpsock, "run", *arm.launch, "--", "/bin/true"], text=True,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, env={**os.environ, **arm.env}, timeout=20)
    except OSError as error:
        return f"{warpsock}: {error.strerror}"
    said = done.stdout.strip().splitlines() or [f"`warpsock run` ended with {done.returncode}"]
    return said[0] if done.returncode else None


def foreign_reason(arm):
    if shutil.which(arm.program):
        return None
    return f"no {arm.program} here (Debian: {arm.package})"


def chosen(warpsock, keys, quick):
    """The arms that can be had, of those wanted (keys; empty: all), and why others are left out."""
    found, left = [], {}
    for arm in ARMS:
        if keys and arm.key not in keys and arm is not BASE:
            continue
        why = reason(warpsock, arm)
        if not why and quick and not keys and not arm.quick:
            why = "not in a quick run: --arms names it"
        if why:
            left[arm.title] = why
        else:
            found.append(arm)
    return found, left


def foreign_chosen(keys):
    found, left = [], {}
    for arm in FOREIGN:
        if keys and arm.key not in keys:
            continue
        why = foreign_reason(arm)
        if why:
            left[arm.title] = why
        else:
            found.append(arm)
    return found, left
