/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdarg.h>
#include <stdio.h>

#include "cli/doctor/check.h"

/* Replace special characters: text from files goes to terminals and into JSON. */
static void clean(char *text)
{
	for (; *text; text++)
		if (*text < ' ' || *text > '~')
			*text = *text == '\n' || *text == '\t' ? ' ' : '?';
}

void doctor_report(struct doctor *d, enum doctor_status status, const char *format, ...)
{
	struct doctor_finding *f = &d->finding[d->n];
	va_list ap;

	if (d->n == DOCTOR_FINDINGS_MAX) /* the last finding says that there are more */
		f = &d->finding[DOCTOR_FINDINGS_MAX - 1];
	else
		d->n++;
	f->status = status;
	f->fix[0] = '\0';
	va_start(ap, format);
	vsnprintf(f->found, sizeof(f->found), format, ap);
	va_end(ap);
	clean(f->found);
}

void doctor_fix(struct doctor *d, const char *format, ...)
{
	struct doctor_finding *f = &d->finding[d->n - 1];
	va_list ap;

	va_start(ap, format);
	vsnprintf(f->fix, sizeof(f->fix), format, ap);
	va_end(ap);
	clean(f->fix);
}
