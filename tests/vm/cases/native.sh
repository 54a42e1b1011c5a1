# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# The unit tests of the native API on the provider verbs: both ends on one siw device
# Limit: 400
ulimit -l unlimited
export END_PROVIDER=verbs:siw0 END_ADDRESS=$SIW
check "the device is there" rdma link show siw0/1
adopt operations "$build/tests/unit/unit_soft_ops" --tap -j1
adopt ends "$build/tests/unit/unit_soft_ends" --tap -j1
