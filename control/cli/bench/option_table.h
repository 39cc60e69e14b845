/* SPDX-License-Identifier: BSD-3-Clause */
/* Long options from a table: parsing, range checks and the help text. */
#ifndef OPTION_TABLE_H
#define OPTION_TABLE_H

#include <netinet/in.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

enum option_kind {
	OPTION_NUMBER,  /* uint64_t, min..max */
	OPTION_SECONDS, /* double, above 0 */
	OPTION_REAL,    /* double, min..max */
	OPTION_TEXT,    /* const char * */
	OPTION_ADDRESS, /* struct address */
	OPTION_FLAG,    /* bool */
	OPTION_CALL,    /* take() is asked each time it is given */
};

struct address {
	struct sockaddr_storage socket;
	socklen_t length; /* 0: not given */
};

struct option_row {
	const char *name;
	enum option_kind kind;
	void *value; /* holds the default before, the value after */
	uint64_t min;
	uint64_t max;
	const char *help;
	const char *form; /* of OPTION_CALL, in the help: "SIZE:WEIGHT" */
	/* 0, or -EINVAL with a sentence that says what to give instead. */
	int (*take)(void *value, const char *text, char *error, size_t size);
};

/*
 * Parses argv[1..] by <table>, which ends with a row without name. Returns 0; 1 after it printed
 * the help that --help asked for; -EINVAL after it said on stderr what is wrong.
 */
int options_parse(int argc, char **argv, const char *usage, const struct option_row *table);

/* " --name=" for each option that takes a value, " --name" for others: what completion offers. */
void options_print_names(const struct option_row *table);

/* "192.0.2.1:9000" or "[2001:db8::1]:9000"; names are not resolved. -EINVAL if it is neither. */
int address_parse(const char *text, struct address *address);

#endif
