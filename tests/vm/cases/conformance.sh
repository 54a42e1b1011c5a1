# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# The numbered cases of docs/conformance.md with siw for an end, by the provider verbs
# Limit: 700
ulimit -l unlimited
export CONFORMANCE_DEVICE=verbs:siw0 CONFORMANCE_ADDRESS=$SIW
check "the device is there" rdma link show siw0/1
for group in ddp rdmap read terminate fpdu rfc7306 robust depth start; do
	adopt $group "$build/tests/conformance/conformance" $group
done
