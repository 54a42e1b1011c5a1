# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What the tests of the example programs have in common: servers, clients, time limits."""
import re
import select
import signal
import subprocess
import time

LIMIT = 30


class Done:
    """A program that has ended."""

    def __init__(self, status, out, err):
        self.status, self.out, self.err = status, out, err

    def problems(self, status=0, out=None, err=None):
        """What is not as wanted; err is a pattern."""
        found = [] if self.status == status else [f"exit status {self.status}, wanted {status}"]
        if out is not None and self.out != out:
            found.append(f"printed {self.out!r}, wanted {out!r}")
        if err is not None and not re.search(err, self.err):
            found.append(f"nothing like {err!r} on standard error")
        if found:
            found += self.err.splitlines()[-10:]
        return found


def run(*args, limit=LIMIT):
    try:
        done = subprocess.run(args, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                              timeout=limit, stdin=subprocess.DEVNULL)
    except subprocess.TimeoutExpired as late:
        return Done(f"out of {limit} s", str(late.stdout), str(late.stderr))
    return Done(done.returncode, done.stdout, done.stderr)


def start(*args):
    return subprocess.Popen(args, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                            stdin=subprocess.DEVNULL)


def finish(process, limit=LIMIT):
    """Waits for its end, which becomes a killed one when it takes too long."""
    try:
        out, err = process.communicate(timeout=limit)
    except subprocess.TimeoutExpired:
        process.kill()
        out, err = process.communicate()
        return Done(f"out of {limit} s", out, err)
    return Done(process.returncode, out, err)


class Server:
    """A program that prints "port N" when it listens. Ended with the block, if it has not."""

    def __init__(self, *args):
        self.process = start(*args)
        self.port = None

    def __enter__(self):
        ready, _, _ = select.select([self.process.stdout], [], [], LIMIT)
        line = self.process.stdout.readline() if ready else ""
        found = re.match(r"port (\d+)", line)
        self.port = found[1] if found else "1"
        return self

    def __exit__(self, *_error):
        if self.process.poll() is None:
            self.process.kill()
        self.process.communicate()

    def stop(self):
        """Asks it to end, as a user would."""
        self.process.send_signal(signal.SIGTERM)
        return finish(self.process)

    def wait(self):
        return finish(self.process)


def until(condition, limit=LIMIT):
    end = time.monotonic() + limit
    while time.monotonic() < end:
        if condition():
            return True
        time.sleep(0.02)
    return False
