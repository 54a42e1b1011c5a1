# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# A peer that asked siw for an RTR and ends before it: a BUG of the kernel's, which ends the guest
# Limit: 60
# No fault: what it shows is siw's
# Dies: kernel BUG at drivers/infiniband/core/iwcm.c
port=9400
pair=software-siw
before=(any) before_listen=(any)
meddle initiator:0:all:RST
check "it is cut behind the Request" both accept any swap over -- swap over
nap 20
