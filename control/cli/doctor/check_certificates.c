/* SPDX-License-Identifier: BSD-3-Clause */
/* Certificates of services with TLS: can they be used, and for how long. */
#include "cli/doctor/check.h"
#include "tls/handshake.h"

#define SOON_S (7 * 86400)

static void report_end(struct doctor *d, const struct plan_secured *s,
		       const struct tls_context *context)
{
	char why[96];

	if (!tls_context_is_valid(context, why, sizeof(why)))
		doctor_report(d, DOCTOR_PROBLEM, "services[%s].tls: the certificate %.200s %s",
			      s->service, s->certificate, why);
	else if (tls_context_not_after(context) - time(NULL) < SOON_S)
		doctor_report(d, DOCTOR_WARNING,
			      "services[%s].tls: the certificate %.200s ends within a week",
			      s->service, s->certificate);
	else
		return;
	doctor_fix(d, "have it renewed, then doorbell config apply or systemctl reload "
		      "doorbell-lb: open connections go on");
}

void check_certificates(struct doctor *d)
{
	static const struct tls_protocols none;

	if (d->plan.n_secured == 0) {
		doctor_report(d, DOCTOR_NA, "no service has TLS");
		return;
	}
	/* One place is for what all of them are. */
	for (unsigned int i = 0; i < d->plan.n_secured && d->n < DOCTOR_FINDINGS_MAX - 1; i++) {
		const struct plan_secured *s = &d->plan.secured[i];
		char why[512];
		struct tls_context *context =
			tls_context_create(s->certificate, s->key, &none, why, sizeof(why));

		if (context == NULL) {
			doctor_report(d, DOCTOR_PROBLEM, "services[%s].tls: %.300s", s->service,
				      why);
			doctor_fix(d, "mend the file, then doorbell config check");
			continue;
		}
		report_end(d, s, context);
		tls_context_free(context);
	}
	if (d->n == 0)
		doctor_report(d, DOCTOR_OK, "certificates of %u services; valid for a week at least",
			      d->plan.n_secured);
}
