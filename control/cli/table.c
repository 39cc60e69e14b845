/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"

json_t *cli_member(const json_t *object, const char *path)
{
	const char *dot = strchr(path, '.');

	if (dot == NULL)
		return json_object_get(object, path);
	return cli_member(json_object_getn(object, path, (size_t)(dot - path)), dot + 1);
}

/* Width of UTF-8 text in columns, one per character. */
static unsigned int text_width(const char *s)
{
	unsigned int n = 0;

	for (; *s; s++)
		n += ((unsigned char)*s & 0xc0) != 0x80;
	return n;
}

static void pad(FILE *out, unsigned int n)
{
	static const char blanks[] = "                ";

	for (; n >= sizeof(blanks); n -= (unsigned int)sizeof(blanks) - 1)
		fputs_unlocked(blanks, out);
	fwrite_unlocked(blanks, 1, n, out);
}

/* Text is aligned left, numbers right; a line has no blanks at its end. */
static void print_cell(FILE *out, const struct cli_table *table, unsigned int i, const char *text)
{
	unsigned int width = text_width(text);
	unsigned int gap = table->width[i] > width ? table->width[i] - width : 0;
	bool left = table->column[i].format == CLI_TEXT;

	if (!left)
		pad(out, gap);
	fputs_unlocked(text, out);
	if (i + 1 == table->n) {
		fputc_unlocked('\n', out);
		return;
	}
	pad(out, (left ? gap : 0) + 2);
}

void cli_table_places(struct cli_table *table, const json_t *names)
{
	for (unsigned int i = 0; i < table->n; i++) {
		size_t at = 0;

		while (at < json_array_size(names) &&
		       strcmp(json_string_value(json_array_get(names, at)), table->column[i].key) !=
			       0)
			at++;
		table->place[i] = at;
	}
}

static void widen(struct cli_table *table, unsigned int i, const char *text)
{
	unsigned int width = text_width(text);

	if (width > table->width[i])
		table->width[i] = width;
}

/* Cells as strings, one after the other: their widths are needed before the first is printed. */
struct cells {
	FILE *out;
	char *text;
	size_t size, rows;
};

static void cells_open(struct cells *cells)
{
	*cells = (struct cells){0};
	cells->out = open_memstream(&cells->text, &cells->size);
}

static void cells_add(struct cells *cells, struct cli_table *table, unsigned int i,
		      const char *text)
{
	widen(table, i, text);
	fwrite_unlocked(text, 1, strlen(text) + 1, cells->out);
	cells->rows += i + 1 == table->n;
}

static void print_titles(FILE *out, struct cli_table *table)
{
	for (unsigned int i = 0; i < table->n; i++)
		widen(table, i, table->column[i].title);
	for (unsigned int i = 0; i < table->n; i++)
		print_cell(out, table, i, table->column[i].title);
	table->titled = true;
}

static void cells_print(struct cells *cells, FILE *out, struct cli_table *table)
{
	const char *cell;

	if (fclose(cells->out) != 0)
		cells->rows = 0;
	if (!table->titled)
		print_titles(out, table);
	cell = cells->text;
	for (size_t row = 0; row < cells->rows; row++)
		for (unsigned int i = 0; i < table->n; i++) {
			print_cell(out, table, i, cell);
			cell += strlen(cell) + 1;
		}
	free(cells->text);
}

void cli_table_print(FILE *out, struct cli_table *table, const json_t *rows)
{
	char text[CLI_VALUE_MAX];
	struct cells cells;
	const json_t *row;
	size_t i;

	cells_open(&cells);
	if (cells.out == NULL)
		return;
	json_array_foreach (rows, i, row)
		for (unsigned int c = 0; c < table->n; c++) {
			const struct cli_column *column = &table->column[c];
			const json_t *value = json_is_array(row)
						      ? json_array_get(row, table->place[c])
						      : cli_member(row, column->key);

			cells_add(&cells, table, c,
				  cli_format_value(column->format, value, text, sizeof(text)));
		}
	cells_print(&cells, out, table);
}

size_t cli_table_print_text(FILE *out, struct cli_table *table, struct scan rows)
{
	char text[CLI_VALUE_MAX];
	struct cells cells;
	struct scan row;
	size_t n = 0;

	cells_open(&cells);
	if (cells.out == NULL)
		return 0;
	for (; scan_element(&rows, &row); n++) {
		/* a column without a place in the row stays empty */
		struct scan value[CLI_COLUMNS_MAX + 1] = {0};

		for (size_t i = 0; i < CLI_COLUMNS_MAX && scan_element(&row, &value[i]); i++)
			;
		for (unsigned int c = 0; c < table->n; c++) {
			size_t place = table->place[c];

			cells_add(&cells, table, c,
				  cli_format_scan(
					  table->column[c].format,
					  value[place < CLI_COLUMNS_MAX ? place : CLI_COLUMNS_MAX],
					  text, sizeof(text)));
		}
	}
	cells_print(&cells, out, table);
	return n;
}

/* --- JSON ------------------------------------------------------------------------------------- */

/* True when no letter needs an escape in JSON, as in most names and addresses. */
static bool is_plain(const char *s)
{
	for (; *s; s++)
		if (*s < ' ' || *s > '~' || *s == '"' || *s == '\\')
			return false;
	return true;
}

static void print_json_value(FILE *out, const json_t *value)
{
	char text[CLI_VALUE_MAX];

	if (json_is_integer(value)) {
		fputs_unlocked(cli_format_value(CLI_PLAIN, value, text, sizeof(text)), out);
	} else if (json_is_string(value) && is_plain(json_string_value(value))) {
		fputc_unlocked('"', out);
		fputs_unlocked(json_string_value(value), out);
		fputc_unlocked('"', out);
	} else {
		json_dumpf(value, out, JSON_ENCODE_ANY);
	}
}

void cli_row_json(FILE *out, const json_t *names, const json_t *row)
{
	if (!json_is_array(row)) {
		json_dumpf(row, out, 0);
		return;
	}
	for (size_t i = 0; i < json_array_size(row); i++) {
		fputs_unlocked(i ? ", \"" : "{\"", out);
		fputs_unlocked(json_string_value(json_array_get(names, i)), out);
		fputs_unlocked("\": ", out);
		print_json_value(out, json_array_get(row, i));
	}
	fputc_unlocked('}', out);
}

/* --- pages ------------------------------------------------------------------------------------ */

void cli_page_print(FILE *out, const struct cli_column *column, unsigned int n,
		    const json_t *object)
{
	unsigned int width = 0;
	char text[CLI_VALUE_MAX];

	for (unsigned int i = 0; i < n; i++)
		if (text_width(column[i].title) > width)
			width = text_width(column[i].title);
	for (unsigned int i = 0; i < n; i++) {
		fputs(column[i].title, out);
		pad(out, width - text_width(column[i].title) + 2);
		fprintf(out, "%s\n",
			cli_format_value(column[i].format, cli_member(object, column[i].key), text,
					 sizeof(text)));
	}
}
