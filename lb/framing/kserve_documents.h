/* SPDX-License-Identifier: BSD-3-Clause */
/* The answers of the load balancer itself: health, and what is known of models. Private to
 * stream_kserve.c; pure. */
#ifndef LB_STREAM_KSERVE_DOCUMENTS_H
#define LB_STREAM_KSERVE_DOCUMENTS_H

#include "framing/kserve_body.h"
#include "kserve/route.h"

/* A request for an endpoint other than infer, with a method that it takes. */
void kserve_document_answer(struct kserve_call *c, const struct kserve_route *route);

#endif
