# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""NFS by this host's kernel, server and client, in this network namespace: one export, mounted.

What exportfs and mountd of nfs-utils tell the kernel is written here, so that they need not be
installed: who the client is, what is exported, and that it is the root of NFSv4.
"""
import os
import subprocess
import time
from pathlib import Path

NFSD = Path("/proc/fs/nfsd")
CHANNELS = Path("/proc/self/net/rpc")
NEVER = 2**31 - 1
# of linux/nfsd/export.h: any port, no check of subtrees, the number of the file system is given
FLAGS = 0x2 | 0x400 | 0x2000
GRACE = 10  # seconds, the least that the kernel takes


def tell(path, text):
    """One write: half a line would be refused."""
    where = os.open(path, os.O_WRONLY)
    try:
        os.write(where, text.encode())
    finally:
        os.close(where)


class Nfs:
    """Serves a folder of its own, which may be filled without NFS."""

    def __init__(self, folder):
        self.folder = Path(folder) / "exported"
        self.where = Path(folder) / "nfs"
        self.folder.mkdir()
        self.where.mkdir()
        subprocess.run(["mount", "-t", "nfsd", "nfsd", NFSD], check=True)
        tell(CHANNELS / "auth.unix.ip/channel", f"nfsd 127.0.0.1 {NEVER} here\n")
        tell(CHANNELS / "nfsd.export/channel", f"here {self.folder} {NEVER} {FLAGS} 0 0 0\n")
        tell(CHANNELS / "nfsd.fh/channel", f"here 1 \\x00000000 {NEVER} {self.folder}\n")
        tell(NFSD / "nfsv4gracetime", f"{GRACE}\n")
        tell(NFSD / "nfsv4leasetime", f"{GRACE}\n")
        tell(NFSD / "versions", "-3 +4 +4.1 +4.2\n")
        tell(NFSD / "portlist", "tcp 2049\n")
        try:
            tell(NFSD / "threads", "8\n")
            time.sleep(GRACE + 2)  # until then nothing can be opened
            self.mount()
        except BaseException:
            self.end()
            raise

    def mount(self):
        subprocess.run(["mount", "-i", "-t", "nfs4", "-o",
                        "vers=4.2,proto=tcp,sec=sys,addr=127.0.0.1,clientaddr=127.0.0.1",
                        "127.0.0.1:/", self.where], check=True)

    def forget(self):
        """What the client has in its caches."""
        subprocess.run(["umount", self.where], check=True)
        self.mount()

    def end(self):
        """The kernel's threads would go on without us."""
        subprocess.run(["umount", self.where], check=False)
        tell(NFSD / "threads", "0\n")
