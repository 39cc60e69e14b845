/* SPDX-License-Identifier: BSD-3-Clause */
/* Runs the rows of a program. The last line has the counts that deploy/test.sh adds up. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "walk.h"

static struct walk_test *first, **last = &first;

void walk_register(struct walk_test *test)
{
	*last = test;
	last = &test->next;
}

static bool wanted(const struct walk_test *test, int argc, char **argv)
{
	for (int i = 1; i < argc; i++)
		if (strstr(test->name, argv[i]) != NULL)
			return true;
	return argc == 1;
}

int main(int argc, char **argv)
{
	unsigned int tested = 0, failing = 0;

	for (struct walk_test *test = first; test != NULL; test = test->next) {
		if (!wanted(test, argc, argv))
			continue;
		walk_context("%s", "");
		test->run();
		/* Each row of a table counts. */
		tested += walk_contexts();
		if (walk_failures() == 0)
			continue;
		failing++;
		fprintf(stderr, "FAILED  %s\n", test->name);
	}
	printf("Tested: %u | Passing: %u | Failing: %u\n", tested, tested - failing, failing);
	return failing > 0 || tested == 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}
