/* SPDX-License-Identifier: BSD-3-Clause */
#include "packet/drop.h"

static const struct {
	const char *name, *text;
} drops[LB_DROPS] = {
#define ROW(symbol, name, text) [LB_DROP_##symbol] = {name, text},
	LB_DROP_LIST(ROW)
#undef ROW
};

const char *lb_drop_name(enum lb_drop reason)
{
	return drops[reason].name;
}

const char *lb_drop_text(enum lb_drop reason)
{
	return drops[reason].text;
}
