/* SPDX-License-Identifier: BSD-3-Clause */
#include <criterion/criterion.h>
#include <string.h>

#include "pool.h"
#include "schedule/pick.h"
#include "workers_fixture.h"
#include "pick_table.h"

static struct worker *add_worker(struct worker_pool *pool, unsigned int i, uint32_t weight)
{
	return fixture_worker(pool, i, 64, weight);
}

static struct worker_pool *pool_of(unsigned int n)
{
	struct worker_pool *pool = workers_pool_create();

	for (unsigned int i = 0; i < n; i++)
		add_worker(pool, i, 1);
	return pool;
}

static void count_entries(const struct pick_table *table, unsigned int entries[WORKERS_MAX])
{
	memset(entries, 0, WORKERS_MAX * sizeof(entries[0]));
	for (unsigned int i = 0; i < table->n_entries; i++) {
		cr_assert(workers_pick_table_has(table, table->entry[i]), "entry %u", i);
		entries[table->entry[i]]++;
	}
}

Test(workers_maglev, equal_workers_get_equal_shares)
{
	static const unsigned int sizes[] = {1, 2, 3, 10, 100, 1000, WORKERS_MAX};

	for (size_t s = 0; s < sizeof(sizes) / sizeof(sizes[0]); s++) {
		struct worker_pool *pool = pool_of(sizes[s]);
		struct pick_table *table = pick_table_of_model(pool, "echo", PICK_MAGLEV);
		unsigned int entries[WORKERS_MAX], share = table->n_entries / sizes[s];

		count_entries(table, entries);
		for (unsigned int i = 0; i < sizes[s]; i++)
			cr_assert(entries[i] == share || entries[i] == share + 1,
				  "worker %u of %u: %u", i, sizes[s], entries[i]);
		workers_pick_table_destroy(table);
		workers_pool_destroy(pool);
	}
}

Test(workers_maglev, a_share_follows_the_weight)
{
	static const uint32_t weights[] = {1, 2, 4, 256, 1, 100};
	struct worker_pool *pool = workers_pool_create();
	unsigned int entries[WORKERS_MAX], total = 0;
	struct pick_table *table;

	for (unsigned int i = 0; i < 6; i++) {
		add_worker(pool, i, weights[i]);
		total += weights[i];
	}
	table = pick_table_of_model(pool, "echo", PICK_MAGLEV);
	count_entries(table, entries);
	for (unsigned int i = 0; i < 6; i++)
		cr_assert_float_eq((double)entries[i] / table->n_entries,
				   (double)weights[i] / total, 0.0001, "worker %u: %u", i,
				   entries[i]);
	workers_pick_table_destroy(table);
	workers_pool_destroy(pool);
}

Test(workers_maglev, load_balancers_that_number_workers_differently_agree)
{
	struct worker_pool *one = pool_of(50), *other = workers_pool_create();
	struct pick_table *a, *b;

	for (unsigned int i = 50; i-- > 0;)
		add_worker(other, i, 1);
	a = pick_table_of_model(one, "echo", PICK_MAGLEV);
	b = pick_table_of_model(other, "echo", PICK_MAGLEV);
	for (unsigned int i = 0; i < a->n_entries; i++) {
		const char *name = workers_get(one, a->entry[i])->spec.name;

		cr_assert_str_eq(workers_get(other, b->entry[i])->spec.name, name);
	}
	workers_pick_table_destroy(a);
	workers_pick_table_destroy(b);
	workers_pool_destroy(one);
	workers_pool_destroy(other);
}

/* Measures the table after <gone> left: entries that changed workers, and those of them that were
 * not its own. */
static void measure_removal(struct worker_pool *pool, unsigned int gone, double *moved,
			    double *bystanders)
{
	struct pick_table *before = pick_table_of_model(pool, "echo", PICK_MAGLEV), *after;
	struct worker *worker = workers_get(pool, gone);
	unsigned int changed = 0, own = 0;

	worker->state = WORKER_DRAINING;
	after = pick_table_of_model(pool, "echo", PICK_MAGLEV);
	worker->state = WORKER_ACTIVE;
	for (unsigned int i = 0; i < after->n_entries; i++) {
		cr_assert_neq(after->entry[i], gone);
		changed += before->entry[i] != after->entry[i];
		own += before->entry[i] == gone;
	}
	*moved = (double)changed / after->n_entries;
	*bystanders = (double)(changed - own) / after->n_entries;
	workers_pick_table_destroy(before);
	workers_pick_table_destroy(after);
}

Test(workers_maglev, removing_one_worker_moves_little_more_than_its_own_share)
{
	/* The extra disruption depends on the number of entries per worker. */
	static const struct {
		unsigned int n, step;
		double extra;
	} rows[] = {{10, 1, 0.004}, {100, 9, 0.005}, {512, 73, 0.005}};

	for (size_t r = 0; r < sizeof(rows) / sizeof(rows[0]); r++) {
		struct worker_pool *pool = pool_of(rows[r].n);
		double worst = 0;

		for (unsigned int gone = 0; gone < rows[r].n; gone += rows[r].step) {
			double moved, bystanders;

			measure_removal(pool, gone, &moved, &bystanders);
			cr_assert_leq(moved, 1.0 / rows[r].n + rows[r].extra, "%u of %u: %f", gone,
				      rows[r].n, moved);
			worst = bystanders > worst ? bystanders : worst;
		}
		cr_log_info("N=%u bystanders moved: at most %.4f", rows[r].n, worst);
		workers_pool_destroy(pool);
	}
}

Test(workers_maglev, a_pick_is_the_entry_of_the_hash_or_nobody)
{
	struct worker_pool *pool = pool_of(10);
	struct pick_table *table = pick_table_of_model(pool, "echo", PICK_MAGLEV);
	struct pick_state state = {0};
	static struct pick_load load;

	for (unsigned int i = 0; i < 10; i++)
		workers_load_open(&load, i, i == 3 ? 0 : 1);
	for (uint64_t hash = 0; hash <= UINT32_MAX; hash += 104729) {
		uint16_t entry = table->entry[hash * table->n_entries >> 32];
		uint16_t picked = workers_pick(table, &load, hash, &state);

		cr_assert_eq(picked, entry == 3 ? WORKER_NONE : entry);
	}
	workers_pick_table_destroy(table);
	workers_pool_destroy(pool);
}
