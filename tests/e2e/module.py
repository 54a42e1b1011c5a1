#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Builds the kernel module against the headers of each kernel that are here, and looks at it.

Headers of Debian 12's kernel are installed; those of the backports' are unpacked by the lab
(tests/vm/prepare.sh 6.12). Nothing is loaded: the lab's case `module` does that.
"""
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
import tap  # noqa: E402

ROOT = Path(__file__).resolve().parent.parent.parent
KERNELS = {"6.1": Path("/usr/src"), "6.12": ROOT / "build-vm/6.12/root/usr/src"}
# ./dev installs the first, and only the lab has the other
ABSENT = {"6.1": "no headers of Linux 6.1 here", "6.12": "no headers of Linux 6.12 here"}
FRAME_MAX = 1024
DEPENDS = {"libcrc32c"}
LAYERS = ("mpa", "ddp", "rdmap")


def headers_of(kernel):
    found = sorted(KERNELS[kernel].glob(f"linux-headers-{kernel}.*-amd64"))
    return found[-1] if found else None


def run(*args, cwd=None):
    return subprocess.run(args, cwd=cwd, text=True, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, timeout=500)


def complaints(output):
    return [line for line in output.splitlines()
            if re.search(r"\b(warning|error|WARNING|ERROR)\b", line)]


def build(headers, folder):
    """What went wrong, of a build in a tree of its own."""
    copied = run("make", "-s", "-C", ROOT / "kmod", "tree", f"DEST={folder}")
    done = run("make", "-C", folder / "kmod", f"KDIR={headers}", "KCFLAGS=-fstack-usage")
    problems = complaints(copied.stdout + done.stdout)
    if done.returncode and not problems:
        problems = done.stdout.splitlines()[-20:] or ["make failed"]
    return problems


def frames(folder):
    """(function, octets) of all that was compiled, the module's own boilerplate too."""
    for path in folder.rglob("*.su"):
        for line in path.read_text().splitlines():
            where, size, kind = line.split("\t")
            yield where.rpartition("/")[2], int(size), kind


def long_frames(folder):
    found = list(frames(folder))
    if not found:
        return ["the compiler has told of no frame"]
    print(f"# the longest of {len(found)} frames has {max(size for _, size, _ in found)} octets")
    return [f"{where}: {size} octets, {kind}" for where, size, kind in found
            if size > FRAME_MAX or "bounded" not in kind and kind != "static"]


def field(module, name):
    return run("modinfo", "-F", name, module).stdout.split("\n")[:-1]


def description(module):
    depends = {word for line in field(module, "depends") for word in line.split(",") if word}
    if field(module, "name") != ["warp_ddp"]:
        yield f"its name is {field(module, 'name')}"
    if not any("GPL" in licence for licence in field(module, "license")):
        yield "its licence is not the kernel's"
    if depends - DEPENDS:
        yield f"it needs {depends - DEPENDS}"
    version = re.search(r'PACKAGE_VERSION="(.*)"', (ROOT / "kmod/dkms.conf").read_text())[1]
    if field(module, "version") != [version]:
        yield f"its version is {field(module, 'version')}, DKMS's {version}"
    for gone in ("retpoline", "vermagic"):
        if not field(module, gone):
            yield f"{gone} is missing"


def codec_left_out():
    """The layers' files that the module does not compile: there is one codec."""
    kbuild = (ROOT / "kmod/Kbuild").read_text()
    for layer in LAYERS:
        inside = re.search(rf"\$\(addprefix \.\./{layer}/,(.*?)\)", kbuild, re.S)
        there = {path.stem for path in (ROOT / layer).glob("*.c")}
        taken = {name[:-2] for name in inside[1].split()} if inside else set()
        yield from (f"{layer}/{name}.c" for name in sorted(there - taken))


def judge(writer, kernel, headers):
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        module = folder / "kmod/warp_ddp.ko"
        writer.case(f"{kernel}: it builds without a warning", build(headers, folder))
        if not module.exists():
            return
        writer.case(f"{kernel}: no frame is longer than {FRAME_MAX} octets", long_frames(folder))
        writer.case(f"{kernel}: it says what it is", list(description(module)))


def main():
    os.nice(5)
    writer = tap.Writer()
    writer.case("the codec is the one of user space, all of it", list(codec_left_out()))
    for kernel in KERNELS:
        headers = headers_of(kernel)
        if headers:
            judge(writer, kernel, headers)
        else:
            writer.skip(f"{kernel}: it builds", ABSENT[kernel])
    writer.finish()


if __name__ == "__main__":
    main()
