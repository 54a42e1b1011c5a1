# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What bash, zsh and fish complete of a line of warpsock, each by its own completion.

    complete(SHELL, FOLDER, ENV, LINE): the set of words it offers, and what else it said
"""
import os
import pty
import re
import select
import subprocess
import termios
import time

from terminal import own_terminal

LIMIT = 30
BASH = """
source completion.bash || exit
COMP_WORDS=({words} {last})
COMP_CWORD={at}
_warpsock
printf '%s\\n' "${{COMPREPLY[@]}}"
"""
# What its functions would add to the list goes to a file, too
ZSH = """
fpath=($PWD $fpath)
autoload -Uz compinit
compinit -u -D
zstyle ':completion:*' insert-tab false # though more keys follow the tab
compadd() {
	local -a hits
	if [[ ${argv[1,(i)--]} != *-[OAD]* ]]; then
		builtin compadd -O hits "$@"
		print -rl -- $hits >> hits
	fi
	builtin compadd "$@"
}
"""
FILES = {"bash": "completion.bash", "zsh": "_warpsock", "fish": "warpsock.fish"}


def write(shell, folder, env):
    """The completion script of this shell, where it looks for it; what the shell says of it."""
    text = subprocess.run(["warpsock", "completion", shell], env=env, capture_output=True,
                          text=True, timeout=LIMIT).stdout
    path = folder / FILES[shell]
    path.write_text(text)
    check = [shell, "--no-execute" if shell == "fish" else "-n", str(path)]
    done = subprocess.run(check, capture_output=True, text=True, timeout=LIMIT)
    return done.stderr if done.stderr or done.returncode else ""


def in_bash(folder, env, line):
    words, _, last = line.rpartition(" ")
    script = BASH.format(words=words, last=f"'{last}'", at=len(words.split()))
    done = subprocess.run(["bash", "--norc", "-c", script], env=env, cwd=folder, text=True,
                          capture_output=True, timeout=LIMIT)
    return done.stdout.split("\n"), done.stderr


def in_fish(folder, env, line):
    script = f"source warpsock.fish; complete -c printf -f -l known; complete -C '{line}'"
    done = subprocess.run(["fish", "--no-config", "-c", script], env=dict(env, HOME=str(folder)),
                          cwd=folder, text=True, capture_output=True, timeout=LIMIT)
    return [seen.split("\t")[0] for seen in done.stdout.splitlines()], done.stderr


def see(master, wanted):
    seen, end = "", time.monotonic() + LIMIT
    while not re.search(wanted, seen):
        left = end - time.monotonic()
        if left <= 0 or not select.select([master], [], [], left)[0]:
            raise RuntimeError(f"{wanted!r} is not to be seen in {seen!r}")
        seen += os.read(master, 65536).decode(errors="replace").replace("\0", "")
    return seen


def in_zsh(folder, env, line):
    """Only at a terminal does it complete: the line is typed, and then a tab."""
    hits = folder / "hits"
    hits.unlink(missing_ok=True)
    (folder / "zshrc").write_text(ZSH)
    master, slave = pty.openpty()
    termios.tcsetwinsize(slave, (50, 200))
    shell = subprocess.Popen(["zsh", "-f", "-i"], stdin=slave, stdout=slave, stderr=slave,
                             cwd=folder, start_new_session=True, preexec_fn=own_terminal,
                             env=dict(env, TERM="vt100", HOME=str(folder)))
    os.close(slave)
    try:
        os.write(master, b'source ./zshrc; echo RE"ADY"\n')
        see(master, r"READY(?s:.*)\[\?2004h")  # its editor has taken the terminal
        os.write(master, line.encode() + b'\t\x15echo DO"NE"\n')
        said = see(master, "DONE")
    finally:
        shell.kill()
        shell.wait()
        os.close(master)
    return hits.read_text().split("\n") if hits.exists() else [], said


SHELLS = {"bash": in_bash, "zsh": in_zsh, "fish": in_fish}


def complete(shell, folder, env, line):
    words, said = SHELLS[shell](folder, env, line)
    return {word for word in words if word}, said
