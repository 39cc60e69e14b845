/* SPDX-License-Identifier: BSD-3-Clause */
/* Command lines read by a table: values, errors, operands, help. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <criterion/criterion.h>

#include "runtime/endpoint.h"
#include "runtime/option_table.h"

struct values {
	uint64_t n64;
	uint32_t n32;
	uint8_t n8;
	uint32_t power;
	double real, seconds;
	const char *text;
	enum { ONE, TWO, THREE } word;
	bool second, on, off;
	struct endpoint_address to;
	struct endpoint lb;
	unsigned int calls;
	const char *called; /* "": without a value */
};

static int take(void *field, const char *text, char *error, size_t size)
{
	struct values *v = field;

	v->called = text == NULL ? "" : text;
	v->calls++;
	if (strcmp(v->called, "bad") != 0)
		return 0;
	snprintf(error, size, "is bad; write good");
	return -EINVAL;
}

#define AT(field) OPTION_AT(struct values, field)

static const char *const three[] = {"one", "two", "three-or-more", NULL};
static const char *const two[] = {"soft", "verbs", NULL};

static const struct option_row rows[] = {
	{"n64", OPTION_NUMBER, AT(n64), NULL, "a number"},
	{"n32", OPTION_NUMBER, AT(n32), "BYTES", "of some length", 1, 64},
	{"n8", OPTION_NUMBER, AT(n8), NULL, "a small one"},
	{"power", OPTION_POWER_OF_TWO, AT(power), NULL, "doubles [16: by hand]", 2, 1024},
	{"real", OPTION_REAL, AT(real), NULL, "with a point", 0, 10},
	{"seconds", OPTION_SECONDS, AT(seconds), NULL, "time"},
	{"text", OPTION_TEXT, AT(text), "FILE", "words", .letter = 't'},
	{"word", OPTION_WORD, AT(word), NULL, "one of them", .words = three},
	{"second", OPTION_WORD, AT(second), "ENGINE", "of two", .words = two},
	{"on", OPTION_FLAG, AT(on), NULL, "turn on", .letter = 'o'},
	{"no-off", OPTION_FLAG_OFF, AT(off), NULL, "turn off"},
	{"to", OPTION_ADDRESS, AT(to), NULL, "where to"},
	{0},
};

static const struct option_row shared[] = {
	{"lb", OPTION_ENDPOINT, AT(lb), NULL, "where from", .required = true},
	{"call", OPTION_CALL, OPTION_WHOLE(struct values), "GOOD", "asks", .take = take},
	{"may", OPTION_CALL, OPTION_WHOLE(struct values), "[=GOOD]", "may ask", .take = take,
	 .optional = true},
	{0},
};

static const struct option_table table = {.program = "program",
					  .usage = "program [...]",
					  .version = "1.2",
					  .rows = rows,
					  .shared = shared};
static const struct option_table with_operands = {
	.program = "program", .rows = rows, .shared = shared, .operands = true};

static struct values v;
static uint64_t given;
static char said[8192];
static char *words[32];

/* Parses the words of <line>, separated by blanks. <said> gets all that is printed. */
static int parse(const struct option_table *t, const char *line)
{
	static char copy[512];
	int argc = 0, ret, out = dup(STDOUT_FILENO), error = dup(STDERR_FILENO);
	FILE *file = tmpfile();

	snprintf(copy, sizeof(copy), "%s", line);
	words[argc++] = "argv0";
	for (char *at = strtok(copy, " "); at != NULL; at = strtok(NULL, " "))
		words[argc++] = at;
	words[argc] = NULL;
	v = (struct values){.off = true, .n32 = 7, .power = 16, .real = 2.5, .word = TWO};
	fflush(stdout);
	dup2(fileno(file), STDOUT_FILENO);
	dup2(fileno(file), STDERR_FILENO);
	ret = options_parse(t, argc, words, &v, &given);
	fflush(stdout);
	dup2(out, STDOUT_FILENO);
	dup2(error, STDERR_FILENO);
	close(out);
	close(error);
	rewind(file);
	said[fread(said, 1, sizeof(said) - 1, file)] = '\0';
	fclose(file);
	return ret;
}

Test(option_table, values_go_where_the_rows_say)
{
	cr_assert_eq(
		parse(&table,
		      "--n64=18446744073709551615 --n32 64 --n8 255 --power 1024 "
		      "--real 0.5 --seconds 1.5 -t file --word three-or-more --second verbs -o "
		      "--no-off --to [2001:db8::1]:9 --lb name.example:80 --call x"),
		0, "%s", said);
	cr_assert_eq(v.n64, UINT64_MAX);
	cr_assert_eq(v.n32, 64);
	cr_assert_eq(v.n8, 255);
	cr_assert_eq(v.power, 1024);
	cr_assert_eq(v.real, 0.5);
	cr_assert_eq(v.seconds, 1.5);
	cr_assert_str_eq(v.text, "file");
	cr_assert_eq(v.word, THREE);
	cr_assert(v.second && v.on && !v.off);
	cr_assert_eq(v.to.socket.ss_family, AF_INET6);
	cr_assert_str_eq(v.lb.host, "name.example");
	cr_assert_str_eq(v.called, "x");
	cr_assert_str_empty(said);
}

Test(option_table, what_is_not_given_keeps_its_default)
{
	cr_assert_eq(parse(&table, "--lb h:1"), 0);
	cr_assert(v.n32 == 7 && v.word == TWO && v.off && v.text == NULL && v.to.length == 0);
	cr_assert(option_is_given(&table, given, "lb"));
	cr_assert_not(option_is_given(&table, given, "n64"));
	cr_assert_eq(given, UINT64_C(1) << 12);
}

Test(option_table, the_last_of_several_counts_and_each_is_taken)
{
	cr_assert_eq(parse(&table, "--lb h:1 --n32 1 --n32=2 --call a --call b"), 0);
	cr_assert_eq(v.n32, 2);
	cr_assert_eq(v.calls, 2);
	cr_assert_str_eq(v.called, "b");
}

Test(option_table, a_value_may_be_optional)
{
	cr_assert_eq(parse(&with_operands, "--lb h:1 --may word"), 0);
	cr_assert_str_eq(v.called, "");
	cr_assert_str_eq(words[1], "word");
	cr_assert_eq(parse(&table, "--lb h:1 --may=x"), 0);
	cr_assert_str_eq(v.called, "x");
}

Test(option_table, names_may_be_shortened_as_long_as_one_fits)
{
	cr_assert_eq(parse(&table, "--lb h:1 --po 4 --n6=3"), 0, "%s", said);
	cr_assert(v.power == 4 && v.n64 == 3);
	cr_assert_eq(parse(&table, "--lb h:1 --n 4"), -EINVAL);
	cr_assert_str_eq(said, "program: --n is short for several: --n64, --n32, --n8, --no-off\n");
	cr_assert_eq(parse(&table, "--lb h:1 --w=two"), 0, "%s", said);
	cr_assert_eq(parse(&table, "--lb h:1 --se=verbs"), -EINVAL);
	cr_assert_str_eq(said, "program: --se is short for several: --seconds, --second\n");
	cr_assert_eq(parse(&table, "--lb h:1 --second=verbs"), 0, "%s", said);
	cr_assert_eq(parse(&table, "--lb h:1 -tfile"), 0);
	cr_assert_str_eq(v.text, "file");
}

Test(option_table, mistakes_name_the_option_the_value_and_the_fix)
{
	static const struct {
		const char *line, *error;
	} bad[] = {
		{"--n32 0", "--n32: '0' is not a number from 1 to 64"},
		{"--n32 65", "--n32: '65' is not a number from 1 to 64"},
		{"--n32 1k", "--n32: '1k' is not a number from 1 to 64"},
		{"--n32 -1", "--n32: '-1' is not a number from 1 to 64"},
		{"--n32=", "--n32: '' is not a number from 1 to 64"},
		{"--n8 256", "--n8: '256' is not a number from 0 to 255"},
		{"--n64 18446744073709551616",
		 "--n64: '18446744073709551616' is not a number from 0 to 18446744073709551615"},
		{"--power 12", "--power: '12' is not a power of two from 2 to 1024"},
		{"--real 11", "--real: '11' is not a number from 0 to 10"},
		{"--real nan", "--real: 'nan' is not a number from 0 to 10"},
		{"--seconds 0", "--seconds: '0' is not a number of seconds above 0"},
		{"--seconds nan", "--seconds: 'nan' is not a number of seconds above 0"},
		{"--word four", "--word: 'four' is none of one, two, three-or-more"},
		{"--second hard", "--second: 'hard' is neither soft nor verbs"},
		{"--to h:1", "--to: 'h:1' is not ADDR:PORT; write 192.0.2.1:9000 or "
			     "[2001:db8::1]:9000"},
		{"--lb h", "--lb: 'h' is not HOST:PORT; write 10.201.0.254:4790 or [fd00::1]:4790"},
		{"--call bad", "--call: 'bad' is bad; write good"},
		{"--on=yes", "--on takes no value, and 'yes' is given"},
		{"--n32", "--n32: give a value: --n32 BYTES"},
		{"--word", "--word: give a value: --word one|two|three-or-more"},
		{"-t", "--text: give a value: --text FILE"},
		{"--fast", "there is no option --fast (see --help)"},
		{"-x", "there is no option -x (see --help)"},
		{"word", "unexpected argument 'word' (see --help)"},
		{"-- --on", "unexpected argument '--on' (see --help)"},
		{"--on", "--lb is required (see --help)"},
		{"", "--lb is required (see --help)"},
	};

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		char error[256];

		snprintf(error, sizeof(error), "program: %s\n", bad[i].error);
		cr_assert_eq(parse(&table, bad[i].line), -EINVAL, "%s", bad[i].line);
		cr_assert_str_eq(said, error);
	}
}

/* "--config --check" lacks the name of a file; "--config=--check" has it. */
Test(option_table, an_option_is_no_value_of_the_one_before)
{
	cr_assert_eq(parse(&table, "--lb h:1 --text --on"), -EINVAL);
	cr_assert_str_eq(said, "program: --text: give a value: --text FILE\n");
	cr_assert_eq(parse(&table, "--lb h:1 -t --n32=2"), -EINVAL);
	cr_assert_eq(parse(&table, "--lb h:1 --text=--on"), 0, "%s", said);
	cr_assert_str_eq(v.text, "--on");
	cr_assert_eq(parse(&table, "--lb h:1 --text --other"), 0, "%s", said);
	cr_assert_str_eq(v.text, "--other");
}

Test(option_table, operands_are_gathered_wherever_they_stand)
{
	cr_assert_eq(parse(&with_operands, "a --lb h:1 b - -o -- --n32"), 0, "%s", said);
	cr_assert_str_eq(words[1], "a");
	cr_assert_str_eq(words[2], "b");
	cr_assert_str_eq(words[3], "-");
	cr_assert_str_eq(words[4], "--n32");
	cr_assert_null(words[5]);
	cr_assert(v.on);
}

Test(option_table, a_table_without_operands_leaves_the_words_alone)
{
	cr_assert_eq(parse(&table, "--n32 2 --lb h:1"), 0);
	cr_assert_str_eq(words[1], "--n32");
	cr_assert_str_eq(words[4], "h:1");
}

Test(option_table, help_and_version_are_printed_instead)
{
	static const char help[] = "usage: program [...]\n\n"
				   "      --n64 N                a number\n"
				   "      --n32 BYTES            of some length [7]\n"
				   "      --n8 N                 a small one\n"
				   "      --power N              doubles [16: by hand]\n"
				   "      --real N               with a point [2.5]\n"
				   "      --seconds S            time\n"
				   "  -t, --text FILE            words\n"
				   "      --word one|two|three-or-more\n"
				   "                             one of them [two]\n"
				   "      --second ENGINE        of two [soft]\n"
				   "  -o, --on                   turn on\n"
				   "      --no-off               turn off\n"
				   "      --to ADDR:PORT         where to\n"
				   "      --lb HOST:PORT         where from [required]\n"
				   "      --call GOOD            asks\n"
				   "      --may[=GOOD]           may ask\n"
				   "  -V, --version              print the version\n"
				   "  -h, --help                 print this help\n";

	cr_assert_eq(parse(&table, "--help"), 1);
	cr_assert_str_eq(said, help);
	cr_assert_eq(parse(&table, "-h"), 1);
	cr_assert_str_eq(said, help);
	cr_assert_eq(parse(&table, "--version"), 1);
	cr_assert_str_eq(said, "program 1.2\n");
	cr_assert_eq(parse(&table, "-V"), 1);
	cr_assert_eq(parse(&with_operands, "--help"), -EINVAL);
	cr_assert_eq(parse(&with_operands, "--version"), -EINVAL);
}
