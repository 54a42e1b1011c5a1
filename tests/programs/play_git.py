# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""git: a daemon that executes itself for each connection; clones, fetches and pushes."""
import os
import subprocess

NEEDS = ("git",)
VERSION = ("git", "--version")
ASKED = {"PEER_CLOSED"}
FILES = 40


def git(play, *args, cwd="."):
    """As the user would prepare it, without warpsock."""
    subprocess.run(["git", "-c", "user.name=w", "-c", "user.email=w@w", *args], check=True,
                   timeout=60, cwd=play.dir / cwd, stdout=subprocess.DEVNULL,
                   stderr=subprocess.DEVNULL)


def commit(play, folder, name, text):
    (play.dir / folder / name).write_text(text)
    git(play, "add", name, cwd=folder)
    git(play, "commit", "-q", "-m", name, cwd=folder)


def head(play, folder):
    return subprocess.run(["git", "rev-parse", "HEAD"], check=True, timeout=60, text=True,
                          cwd=play.dir / folder, stdout=subprocess.PIPE).stdout


def same_heads(play, one, other):
    return [] if head(play, one) == head(play, other) else [f"{one} and {other} differ"]


def play(play):
    port = play.port()
    git(play, "init", "-q", "-b", "main", "work")
    for number in range(FILES):
        play.blob(f"work/file{number}", play.some(100_000))
    git(play, "add", ".", cwd="work")
    commit(play, "work", "marker", play.marker)
    git(play, "clone", "-q", "--bare", "work", "served/one.git")
    git(play, "config", "daemon.receivepack", "true", cwd="served/one.git")
    server = play.serve("daemon", ["git", "daemon", "--listen=127.0.0.1", f"--port={port}",
                                   "--reuseaddr", "--export-all", f"--base-path={play.dir}/served",
                                   play.dir / "served"], port)
    url = f"git://127.0.0.1:{port}/one.git"
    with play.wire("git", port, marker_of=lambda _: b"git-upload-pack /one.git"):
        problems = play.client("heads", ["git", "ls-remote", url])
    play.case("ls-remote", problems + play.says("heads", head(play, "work").strip()))
    problems = play.client("clone", ["git", "clone", "-q", url, "copy"])
    problems += same_heads(play, "work", "copy") if (play.dir / "copy").exists() else []
    play.case("clone", problems)
    git(play, "fsck", "--strict", cwd="copy")
    commit(play, "copy", "more", play.marker)
    problems = play.client("push", ["git", "push", "-q", url, "main"], cwd=play.dir / "copy")
    play.case("push", problems + same_heads(play, "copy", "served/one.git"))
    problems = play.client("fetch", ["git", "pull", "-q", url, "main"], cwd=play.dir / "work")
    play.case("pull", problems + same_heads(play, "copy", "work"))
    play.stop("daemon", server, statuses=(0, -15, 143))
