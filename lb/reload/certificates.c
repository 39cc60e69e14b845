/* SPDX-License-Identifier: BSD-3-Clause */
#include "reload/certificates.h"

#include <stdio.h>
#include <stdlib.h>

#include "lcore/lcore.h"

#define REASON_MAX 640

_Static_assert(TLS_SERVICES_MAX >= LB_SERVICES_MAX && TLS_LINES_MAX >= LB_LCORES_MAX,
	       "numbers of services and lcores");
_Static_assert(TLS_NAME_MAX >= LB_NAME_MAX, "names of services");

static struct tls_context *load_one(const struct lb_service_config *s, bool strict, char *why,
				    size_t size)
{
	const struct tls_protocols protocols = {
		.http1 = s->framing == LB_FRAMING_KSERVE,
		.http2 = s->framing == LB_FRAMING_KSERVE,
	};
	struct tls_context *context =
		tls_context_create(s->tls_certificate, s->tls_key, &protocols, why, size);
	char stands[96];

	if (context == NULL || tls_context_is_valid(context, stands, sizeof(stands)))
		return context;
	if (!strict) {
		LB_LOG(WARNING, "service=%s event=certificate_validity file=%s reason=\"it %s\"",
		       s->name, s->tls_certificate, stands);
		return context;
	}
	snprintf(why, size, "the certificate %s %s", s->tls_certificate, stands);
	tls_context_free(context);
	return NULL;
}

struct tls_certificates *certificates_load(const struct lb_config *config, bool strict, char *error,
					   size_t size)
{
	struct tls_certificates *all = calloc(1, sizeof(*all));
	char why[REASON_MAX];

	if (all == NULL) {
		snprintf(error, size, "no memory for certificates");
		return NULL;
	}
	for (unsigned int i = 0; i < config->n_services; i++) {
		const struct lb_service_config *s = &config->service[i];

		if (!lb_service_serves(s) || !lb_service_has_tls(s))
			continue;
		snprintf(all->name[i], sizeof(all->name[i]), "%s", s->name);
		all->context[i] = load_one(s, strict, why, sizeof(why));
		if (all->context[i] != NULL)
			continue;
		snprintf(error, size, "services[%s].tls: %s", s->name, why);
		tls_certificates_free(all);
		return NULL;
	}
	return all;
}
