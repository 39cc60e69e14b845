/* SPDX-License-Identifier: BSD-3-Clause */
/* The given configuration or options, and this user's privileges. */
#include "cli/doctor/check.h"

void check_configuration(struct doctor *d)
{
	bool agent = d->plan.side == DOCTOR_AGENT;

	if (d->plan.error[0] != '\0') {
		doctor_report(d, DOCTOR_PROBLEM, "%.300s", d->plan.error);
		doctor_fix(d, agent ? "see doorbell-agent --help"
				    : "mend that; doorbell-lb --config FILE --check says "
				      "when it is good");
	} else if (!d->plan.known) {
		doctor_report(d, DOCTOR_NA, "none given: %s",
			      agent ? "--device, --address, --lb as for doorbell-agent"
				    : "--config FILE");
	} else {
		doctor_report(d, DOCTOR_OK, "%u ports, %u RDMA devices, %u lcores, %u MiB",
			      d->plan.n_ports, d->plan.n_rdma, d->plan.n_cpus, d->plan.memory_mb);
	}
}

static bool opens_sockets(const struct doctor *d)
{
	for (unsigned int i = 0; i < d->plan.n_ports; i++)
		if (d->plan.port[i].kind == PLAN_AF_PACKET || d->plan.port[i].kind == PLAN_AF_XDP ||
		    d->plan.port[i].kind == PLAN_KERNEL)
			return true;
	return false;
}

void check_privileges(struct doctor *d)
{
	bool raw = doctor_capable(d, DOCTOR_CAP_NET_RAW),
	     admin = doctor_capable(d, DOCTOR_CAP_NET_ADMIN);

	if (raw && admin) {
		doctor_report(d, DOCTOR_OK, "CAP_NET_RAW, CAP_NET_ADMIN");
		return;
	}
	doctor_report(d, DOCTOR_WARNING, "no %s%s%s", raw ? "" : "CAP_NET_RAW",
		      raw || admin ? "" : " and no ", admin ? "" : "CAP_NET_ADMIN");
	doctor_fix(d, opens_sockets(d) ? "run this, and the program itself, with sudo"
				       : "run this with sudo: some checks see less without");
}
