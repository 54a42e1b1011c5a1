#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Installs into an empty root, then builds and runs a C and a C++ program with what is found there.

    install.py BUILD
"""
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
import tap  # noqa: E402

CALL = re.compile(r"\b(warp_[a-z0-9_]+)\(")
COMMENT = re.compile(r"/\*.*?\*/", re.S)

# Valid in both languages
PROGRAM = """
#include <stdio.h>
#include <warp/rdma.h>

int main(void)
{
	struct warp_device *dev = NULL;
	struct warp_send_wr wr = { 0, WARP_WR_SEND, WARP_SEND_SIGNALED, NULL, 0,
				   0, 0, 0, 0, 0, 0, 0, 0 };
	const char *name = warp_provider_name(0);
	int ret = warp_device_open(NULL, &dev);

	printf("%s %d %d\\n", warp_version(), (ret == 0) == (name != NULL),
	       warp_qp_post_send(NULL, &wr, 1) < 0);
	return warp_device_close(dev);
}
"""

ACTIVE_PROGRAM = """
#include <stdio.h>
#include <warp/active.h>
#include <warp/active_bpf.h>
int main(void)
{
\tstruct warp_active_server *server;
\tint ret = warp_active_server_create(NULL, &server);

\tprintf("%d %s\\n", !ret, warp_active_code_text(WARP_ACTIVE_OK));
\twarp_active_server_destroy(server);
\treturn 0;
}
"""


def run(args, **kwargs):
    return subprocess.run(args, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          timeout=100, **kwargs)


def problems_of(done):
    return done.stdout.splitlines()[-20:] if done.returncode else []


def exported(library):
    """Pairs of name and version of the functions that a library exports."""
    out = run(["nm", "-D", "--defined-only", str(library)]).stdout
    words = (line.split() for line in out.splitlines())
    return {tuple(word[2].partition("@@")[::2]) for word in words if word[1] not in "A"}


def declared(headers):
    texts = (COMMENT.sub("", header.read_text()) for header in headers)
    return {name for text in texts for name in CALL.findall(text)}


def check_symbols(writer, library, headers, node="WARP"):
    name = library.name
    pairs = exported(library)
    names = {name for name, _ in pairs}
    wanted = declared(headers)
    writer.case(f"{name} exports what the headers declare, and nothing else",
                [f"{name} is declared, not exported" for name in sorted(wanted - names)]
                + [f"{name} is exported, not declared" for name in sorted(names - wanted)])
    writer.case(f"each export of {name} has a version",
                [f"{name} has version {version!r}" for name, version in sorted(pairs)
                 if not re.fullmatch(node + r"_\d+\.\d+", version)])
    dynamic = run(["readelf", "-d", str(library)]).stdout
    writer.case(f"the name of {name} carries its ABI's number",
                [] if f"[{name}.0]" in dynamic else dynamic.splitlines())


def check_program(writer, root, libdir, language, compiler, suffix):
    if not shutil.which(compiler):
        writer.skip(f"a {language} program", f"no {compiler} here")
        return
    env = dict(os.environ, PKG_CONFIG_PATH=str(libdir / "pkgconfig"),
               PKG_CONFIG_SYSROOT_DIR=str(root))
    flags = run(["pkg-config", "--cflags", "--libs", "warp"], env=env)
    source, program = root / f"use{suffix}", root / f"use-{compiler}"
    source.write_text(PROGRAM)
    done = run([compiler, "-Wall", "-Wextra", "-Werror", str(source), "-o", str(program),
                *flags.stdout.split()])
    writer.case(f"a {language} program builds by pkg-config",
                problems_of(flags) or problems_of(done))
    if done.returncode:
        return
    version = run(["pkg-config", "--modversion", "warp"], env=env).stdout.strip()
    done = run([str(program)], env=dict(env, LD_LIBRARY_PATH=str(libdir)))
    good = done.returncode == 0 and done.stdout == f"{version} 1 1\n"
    writer.case(f"a {language} program runs", [] if good else [done.stdout, str(done.returncode)])


def check_amudp(writer, root, libdir, language, compiler):
    """The program with every name of amudp.h and amudp_spmd.h, as a job of two ranks"""
    if not shutil.which(compiler):
        writer.skip(f"a {language} program of Active Messages", f"no {compiler} here")
        return
    env = dict(os.environ, PKG_CONFIG_PATH=str(libdir / "pkgconfig"),
               PKG_CONFIG_SYSROOT_DIR=str(root), LD_LIBRARY_PATH=str(libdir))
    flags = run(["pkg-config", "--cflags", "--libs", "amudp"], env=env)
    source = Path(__file__).resolve().parent / "am-compat/interface.c"
    program = root / f"amudp-{compiler}"
    done = run([compiler, "-x", language.lower(), str(source), "-x", "none", "-o", str(program),
                *flags.stdout.split()])
    problems = problems_of(flags) or problems_of(done)
    if not problems:
        problems = problems_of(run([str(program), "2", "L"], env=env))
    writer.case(f"a {language} program of Active Messages builds by pkg-config and runs", problems)


def check_active(writer, root, libdir, compiler, suffix):
    if not shutil.which(compiler):
        writer.skip(f"a program of Active RDMA by {compiler}", f"no {compiler} here")
        return
    env = dict(os.environ, PKG_CONFIG_PATH=str(libdir / "pkgconfig"),
               PKG_CONFIG_SYSROOT_DIR=str(root), LD_LIBRARY_PATH=str(libdir))
    flags = run(["pkg-config", "--cflags", "--libs", "warp-active"], env=env)
    source, program = root / f"active{suffix}", root / f"active-{compiler}"
    source.write_text(ACTIVE_PROGRAM)
    problems = problems_of(flags) or problems_of(run(
        [compiler, "-Wall", "-Wextra", "-Werror", str(source), "-o", str(program),
         *flags.stdout.split()]))
    if not problems:
        done = run([str(program)], env=env)
        problems = [] if done.stdout == "1 done\n" else [done.stdout, str(done.returncode)]
    writer.case(f"a program of Active RDMA builds by pkg-config and {compiler}, and runs", problems)


def main():
    build, writer = Path(sys.argv[1]), tap.Writer()
    with tempfile.TemporaryDirectory(prefix="warpsock-install-") as name:
        root = Path(name)
        done = run(["meson", "install", "-C", str(build), "--no-rebuild", "--destdir", name])
        writer.case("installs", problems_of(done))
        libdir = next((path.parent for path in root.rglob("libwarp.so")), None)
        if libdir:
            prefix = next(root.rglob("include/warp")).parent.parent
            headers = sorted((prefix / "include/warp").glob("rdma*.h"))
            check_symbols(writer, libdir / "libwarp.so", headers)
            headers = [path for path in sorted((prefix / "include/warp").glob("active*.h"))
                       if path.name != "active_bpf.h"]
            check_symbols(writer, libdir / "libwarp-active.so", headers, "WARP_ACTIVE")
            for language, compiler, suffix in (("C", "gcc", ".c"), ("C++", "g++", ".cc")):
                check_program(writer, root, libdir, language, compiler, suffix)
                check_amudp(writer, root, libdir, language, compiler)
                check_active(writer, root, libdir, compiler, suffix)
    writer.finish()


if __name__ == "__main__":
    main()
