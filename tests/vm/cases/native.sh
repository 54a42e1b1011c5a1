# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# The unit tests of the native API on the provider verbs: a siw device in each namespace
# Limit: 400
ulimit -l unlimited
export END_PROVIDER=verbs:siw0 END_ADDRESS=$PEER
export END_PEER=verbs:siw1 END_PEER_NAMESPACE=/run/netns/peer
needed "the device is there" rdma link show siw0/1
needed "the other one, too" in_peer rdma link add siw1 type siw netdev up0
adopt operations "$build/tests/unit/unit_soft_ops" --tap -j1
adopt ends "$build/tests/unit/unit_soft_ends" --tap -j1
in_peer rdma link delete siw1
