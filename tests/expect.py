# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""For programs in Python that a test runs: what a call gave, and what it should have given."""
import errno


def expect(got, *want):
    assert got in want, f"{got}, not one of {want}"


def error_of(call, *args):
    try:
        call(*args)
    except OSError as problem:
        return errno.errorcode[problem.errno]
    return "none"
