/* SPDX-License-Identifier: BSD-3-Clause */
/* Maps a requester's error to the syndrome of an mlx5 error CQE. Pure. */
#ifndef AGENT_SOFT_SYNDROME_H
#define AGENT_SOFT_SYNDROME_H

#include "rdma/mlx5_post.h"
#include "rdma/requester.h"

/* The syndrome for <error>; <nak> is the fatal NAK's code, if there was one. */
static inline uint8_t soft_syndrome(enum requester_error error, uint8_t nak)
{
	if (error == REQUESTER_RETRY_EXCEEDED)
		return MLX5_SYNDROME_RETRY_EXCEEDED;
	if (error == REQUESTER_RNR_EXCEEDED)
		return MLX5_SYNDROME_RNR_EXCEEDED;
	switch (nak) {
	case ROCE_NAK_REMOTE_ACCESS:
		return MLX5_SYNDROME_REMOTE_ACCESS;
	case ROCE_NAK_REMOTE_OPERATION:
		return MLX5_SYNDROME_REMOTE_OPERATION;
	default:
		return MLX5_SYNDROME_REMOTE_INVALID;
	}
}

#endif
