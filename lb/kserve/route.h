/* SPDX-License-Identifier: BSD-3-Clause */
/* Paths of KServe's endpoints. */
#ifndef LB_KSERVE_ROUTE_H
#define LB_KSERVE_ROUTE_H

#include "kserve/datatype.h"

enum kserve_endpoint {
	KSERVE_NOWHERE,    /* 404 */
	KSERVE_SERVER,     /* /v2 */
	KSERVE_LIVE,       /* /v2/health/live */
	KSERVE_READY,      /* /v2/health/ready */
	KSERVE_STATS,      /* /v2/models/stats: of all models */
	KSERVE_REPOSITORY, /* /v2/repository/index */
	/* of /v2/models/M or /v2/models/M/versions/V: */
	KSERVE_MODEL,
	KSERVE_MODEL_READY,
	KSERVE_MODEL_CONFIG,
	KSERVE_MODEL_STATS,
	KSERVE_MODEL_INFER,
	KSERVE_MODEL_GENERATE,
	KSERVE_MODEL_GENERATE_STREAM,
	KSERVE_UNSUPPORTED, /* Triton has it, we do not: 501 */
};

struct kserve_route {
	enum kserve_endpoint endpoint;
	bool is_get, is_post;             /* methods that it takes; HEAD goes with GET */
	char model[KSERVE_NAME_MAX];      /* decoded; empty: the endpoint is of no model */
	char version[KSERVE_VERSION_MAX]; /* likewise; empty: any */
};

/*
 * <path> as it was sent, without query. Returns 0, or the status to refuse with: 404; 400 for a
 * name that is no UTF-8, is too long, or has control characters; 501.
 */
uint16_t kserve_route(const char *path, uint32_t length, struct kserve_route *route);

/* Its name in logs: "infer"; NULL: it has none. */
const char *kserve_endpoint_name(enum kserve_endpoint endpoint);

/* The methods that it takes, as the field Allow has them. */
const char *kserve_route_allow(const struct kserve_route *route);

#endif
