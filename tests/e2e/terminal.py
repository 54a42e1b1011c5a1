# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""A terminal that a test types at and looks at: a shell with a pty around it.

    with Terminal(folder, env) as terminal:
        seen, status = terminal.type("warpsock rn")
"""
import fcntl
import os
import pty
import re
import select
import signal
import subprocess
import termios
import time

SHELL = ["bash", "--noprofile", "--norc", "--noediting", "-i"]


def own_terminal():
    """Standard input is the session's own terminal, which ^C and ^Z need."""
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)


class Terminal:
    def __init__(self, folder, env=None, columns=400):
        self.master, slave = pty.openpty()
        termios.tcsetwinsize(slave, (50, columns))
        words = dict(os.environ, TERM="dumb", PS1="", PROMPT_COMMAND="echo '<<'$?'>>'",
                     **(env or {}))
        self.shell = subprocess.Popen(SHELL, stdin=slave, stdout=slave, stderr=slave, cwd=folder,
                                      env=words, start_new_session=True, preexec_fn=own_terminal)
        os.close(slave)
        self.wait_prompt(20)
        self.type("stty -echo")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        os.killpg(self.shell.pid, signal.SIGHUP)
        os.close(self.master)
        try:
            self.shell.wait(10)
        except subprocess.TimeoutExpired:
            self.shell.kill()
            self.shell.wait()

    def see(self, wanted, limit=20):
        """What stands there when it matches a pattern; it is gone then."""
        seen, end = "", time.monotonic() + limit
        while not re.search(wanted, seen):
            left = end - time.monotonic()
            if left <= 0 or not select.select([self.master], [], [], left)[0]:
                raise RuntimeError(f"{wanted!r} is not to be seen in {seen!r}")
            seen += os.read(self.master, 65536).decode(errors="replace").replace("\r\n", "\n")
        return seen

    def wait_prompt(self, limit=20):
        """What stands before the prompt, and the status that it shows."""
        seen = self.see(r"<<\d+>>\n$", limit)
        said, _, status = seen.rpartition("<<")
        return said, int(status.split(">")[0])

    def press(self, keys):
        os.write(self.master, keys.encode())

    def type(self, line, limit=20):
        self.press(line + "\n")
        return self.wait_prompt(limit)
