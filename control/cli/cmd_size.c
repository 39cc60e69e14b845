/* SPDX-License-Identifier: BSD-3-Clause */
/* size: the formulas and the simulation are in size/. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/size/size.h"

int cli_size(int argc, char **argv)
{
	struct size_question question;
	struct size_answer answer;
	bool json, kept;
	int ret = size_options_read(argc, argv, &question, &json);

	if (ret != 0)
		return ret > 0 ? EXIT_SUCCESS : EXIT_USAGE;
	ret = size_answer(&question, &answer);
	if (ret == 0 && json) {
		struct cli cli = {.out = stdout};
		json_t *object = size_json(&question, &answer);

		cli_print_json(&cli, object);
		json_decref(object);
	} else if (ret == 0) {
		size_print(&question, &answer, stdout);
	}
	kept = answer.found;
	size_answer_fini(&answer);
	if (ret != 0)
		return cli_error("cannot simulate: %s", strerror(-ret));
	return kept ? EXIT_SUCCESS : EXIT_FAILURE;
}
