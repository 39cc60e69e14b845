/* SPDX-License-Identifier: BSD-3-Clause */
/* Files by which agents and the load balancer prove their identity, and the end of certificates. */
#include "cli/doctor/check.h"
#include "secure/secure.h"

static void report_validity(struct doctor *d, const SSL_CTX *context)
{
	char why[160] = "";
	time_t end;
	enum secure_validity validity =
		secure_validity_at(context, time(NULL), &end, why, sizeof(why));

	if (validity == SECURE_VALID) {
		doctor_report(d, DOCTOR_OK, "%s",
			      end == 0 ? "a token"
				       : "certificates; ours is valid for a week at least");
		return;
	}
	doctor_report(d, validity == SECURE_ENDS_SOON ? DOCTOR_WARNING : DOCTOR_PROBLEM,
		      "control.tls.certificate: %.200s %s", d->plan.tls_certificate, why);
	doctor_fix(d,
		   "have it renewed (deploy/make-ca.sh DIR lb NAME --renew), then systemctl reload "
		   "doorbell-lb");
}

void check_trust(struct doctor *d)
{
	const struct doctor_plan *p = &d->plan;
	struct secure_files files = {p->tls_certificate, p->tls_key, p->tls_ca, p->token_file};
	char error[512];
	SSL_CTX *context;

	if (p->strangers[0] != '\0') {
		doctor_report(d, DOCTOR_PROBLEM,
			      "every host that reaches the agents' port could register");
		doctor_fix(d, "control.tls or control.token_file; or control.allow_plain: true");
		return;
	}
	if (!secure_wanted(&files)) {
		doctor_report(d, DOCTOR_NA, "agents register without proof, as configured");
		return;
	}
	context = secure_context(SECURE_LOAD_BALANCER, &files, error, sizeof(error));
	if (context == NULL) {
		doctor_report(d, DOCTOR_PROBLEM, "%.300s", error);
		doctor_fix(d, "deploy/make-ca.sh makes these files; control.tls and "
			      "control.token_file say where they are");
		return;
	}
	report_validity(d, context);
	SSL_CTX_free(context);
}
