/* SPDX-License-Identifier: BSD-3-Clause */
/* The file with the operators' settings of workers: can the load balancer read and write it? */
#include <string.h>

#include "cli/doctor/check.h"
#include "config/state_file.h"

void check_state_file(struct doctor *d)
{
	char error[512], *fix;
	unsigned int n;

	if (d->plan.state_file[0] == '\0') {
		doctor_report(d, DOCTOR_NA, "control.state_file: none is configured");
		return;
	}
	if (state_file_check(d->plan.state_file, &n, error, sizeof(error)) == 0) {
		doctor_report(d, DOCTOR_OK, "%.200s has settings of %u worker%s",
			      d->plan.state_file, n, n == 1 ? "" : "s");
		return;
	}
	fix = strrchr(error, ';');
	if (fix != NULL)
		*fix = '\0';
	doctor_report(d, DOCTOR_PROBLEM, "control.state_file: %.290s", error);
	doctor_fix(d, "%.250s", fix == NULL ? "set another control.state_file" : fix + 2);
}
