/* SPDX-License-Identifier: BSD-3-Clause */
/* Each way for a requester to fail has its own syndrome in the CQE. */
#include <criterion/criterion.h>

#include "rnic/soft_syndrome.h"

Test(agent_syndrome, tells_each_failure_as_an_mlx5_nic_does)
{
	cr_expect_eq(soft_syndrome(REQUESTER_RETRY_EXCEEDED, 0), 0x15);
	cr_expect_eq(soft_syndrome(REQUESTER_RNR_EXCEEDED, 0), 0x16);
	cr_expect_eq(soft_syndrome(REQUESTER_NAK, ROCE_NAK_INVALID_REQUEST), 0x12);
	cr_expect_eq(soft_syndrome(REQUESTER_NAK, ROCE_NAK_REMOTE_ACCESS), 0x13);
	cr_expect_eq(soft_syndrome(REQUESTER_NAK, ROCE_NAK_REMOTE_OPERATION), 0x14);
	cr_expect_eq(soft_syndrome(REQUESTER_NAK, 0xff), 0x12);
}
