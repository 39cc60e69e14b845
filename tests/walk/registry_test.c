/* SPDX-License-Identifier: BSD-3-Clause */
/* Registrations that are refused, each with a sentence that names what is wrong. */
#include "worker.h"
#include "lb.h"

struct refusal {
	const char *name, *sentence;
	void (*spoil)(struct lb_registration *r);
};

static void other_model(struct lb_registration *r)
{
	snprintf(r->worker.model, sizeof(r->worker.model), "other");
}

static void no_name(struct lb_registration *r)
{
	r->worker.name[0] = '\0';
}

static void bad_name(struct lb_registration *r)
{
	r->worker.name[0] = '/';
}

static void odd_slots(struct lb_registration *r)
{
	r->worker.slots = 12;
}

static void many_slots(struct lb_registration *r)
{
	r->worker.slots = 65536;
}

static void no_batch(struct lb_registration *r)
{
	r->worker.max_batch = 0;
}

static void heavy(struct lb_registration *r)
{
	r->worker.weight = 257;
}

static void slow_heart(struct lb_registration *r)
{
	r->worker.heartbeat_ms = 400;
}

static void fast_heart(struct lb_registration *r)
{
	r->worker.heartbeat_ms = 1;
}

static void small_requests(struct lb_registration *r)
{
	r->worker.max_request = 100;
}

static void large_replies(struct lb_registration *r)
{
	r->worker.max_reply = 9000;
}

static void far_away(struct lb_registration *r)
{
	lb_address_parse("10.77.0.1", &r->address);
}

static void our_address(struct lb_registration *r)
{
	lb_address_parse("10.9.0.1", &r->address);
}

static void odd_mtu(struct lb_registration *r)
{
	r->path_mtu = 1000;
}

static void few_links(struct lb_registration *r)
{
	r->n_links = 1;
}

static void twice(struct lb_registration *r)
{
	r->link[1].lcore = 0;
}

static void no_such_lcore(struct lb_registration *r)
{
	r->link[1].lcore = 2;
}

static void management(struct lb_registration *r)
{
	r->link[0].qpn = 1;
}

static void long_psn(struct lb_registration *r)
{
	r->link[0].psn = 1u << 24;
}

static void odd_stride(struct lb_registration *r)
{
	r->link[0].stride += 4;
}

static void short_stride(struct lb_registration *r)
{
	r->link[0].stride = 64;
}

static void odd_room(struct lb_registration *r)
{
	r->link[1].room = 4095;
}

static void vast_room(struct lb_registration *r)
{
	r->link[0].room = (UINT64_C(1) << 32) + 4096;
}

static void no_room(struct lb_registration *r)
{
	r->worker.max_request = 20000;
	r->link[0].stride = r->link[1].stride = 16384;
}

static void little_room(struct lb_registration *r)
{
	no_room(r);
	r->link[0].room = 20480;
	r->link[1].room = 16384;
}

static void other_entry(struct lb_registration *r)
{
	r->link[1].entry = 256;
}

static void many_chunks(struct lb_registration *r)
{
	r->max_chunks = 4097;
}

static void vast_replies(struct lb_registration *r)
{
	r->worker.slots = 32768;
	r->worker.max_reply = 1472;
	r->max_chunks = 4096;
	r->link[0].stride = 1 << 24;
}

static const struct refusal refusals[] = {
	{"a model of no service", "no service uses 'other'", other_model},
	{"no name", "name", no_name},
	{"a name that no file could have", "name", bad_name},
	{"slots that are no power of two", "slots", odd_slots},
	{"more slots than are counted", "slots", many_slots},
	{"batches of nothing", "max_batch", no_batch},
	{"too heavy", "weight", heavy},
	{"a heart that is slower than the timeout", "heartbeat_ms", slow_heart},
	{"a heart that is too fast", "heartbeat_ms", fast_heart},
	{"requests shorter than the service's", "max_request", small_requests},
	{"replies longer than the service's", "max_reply", large_replies},
	{"an address that no port reaches", "address", far_away},
	{"the load balancer's own address", "address", our_address},
	{"an MTU that RoCE does not have", "path_mtu", odd_mtu},
	{"a link for one of two lcores", "links", few_links},
	{"two links for one lcore", "lcore", twice},
	{"a link for an lcore that is not", "lcore", no_such_lcore},
	{"a queue pair of management", "qpn", management},
	{"a PSN of 25 bits", "psn", long_psn},
	{"a stride that does not align", "stride", odd_stride},
	{"a stride that holds no request", "stride", short_stride},
	{"a room of parts of pages", "links[1].room: 4095 must be a multiple of 4096", odd_room},
	{"a room beyond its account", "links[0].room: 4294971392 must be", vast_room},
	{"no room for a long request", "links[0].room: 0 bytes do not hold a request of 20000;",
	 no_room},
	{"too little room on one link", "links[1].room: 16384 bytes do not hold", little_room},
	{"entries of another size", "links[1].entry: 256; this load balancer writes entries of 64",
	 other_entry},
	{"more chunks than are counted", "max_chunks: 4097", many_chunks},
	{"payloads that no descriptor can name", "links[0].stride: 32768 slots", vast_replies},
};

WALK(registrations_are_refused_with_a_sentence)
{
	struct walk *w = walk_create(&(struct walk_params){.lcores = 2});

	for (size_t i = 0; i < RTE_DIM(refusals); i++) {
		struct lb_registration r;

		walk_context("%s", refusals[i].name);
		walk_worker_registration(w, NULL, &r);
		refusals[i].spoil(&r);
		walk_expect(walk_worker_register_as(w, &r) == NULL);
		walk_expect(strstr(w->error, refusals[i].sentence) != NULL, "%s", w->error);
		walk_expect_eq(workers_count(w->lb->pool, WORKER_GONE), WORKERS_MAX);
	}
	walk_destroy(w);
}

WALK(a_name_is_registered_once)
{
	struct walk *w = walk_create(NULL);

	walk_worker(w, &(struct walk_worker_params){.name = "x"});
	walk_expect(walk_worker_register(w, &(struct walk_worker_params){.name = "x"}) == NULL);
	walk_expect(w->error[0] != '\0');
	walk_expect(walk_worker_register(w, &(struct walk_worker_params){.name = "y"}) != NULL);
	walk_destroy(w);
}

WALK(the_smaller_path_mtu_counts)
{
	static const uint32_t mtus[][2] = {{256, 256}, {512, 512}, {1024, 1024}, {4096, 1024}};

	for (size_t i = 0; i < RTE_DIM(mtus); i++) {
		struct walk *w = walk_create(NULL);
		struct walk_worker *v =
			walk_worker(w, &(struct walk_worker_params){.path_mtu = mtus[i][0]});

		walk_context("%u", mtus[i][0]);
		walk_expect_eq(v->path_mtu, mtus[i][1]);
		walk_destroy(w);
	}
}

WALK(queue_pairs_of_one_place_have_other_numbers_each_time)
{
	struct walk *w = walk_create(NULL);
	uint32_t before = 0;

	for (int i = 0; i < 8; i++) {
		struct walk_worker *v = walk_worker(w, &(struct walk_worker_params){.name = "x"});

		walk_expect(v->link[0].info.qpn != before);
		before = v->link[0].info.qpn;
		lb_worker_remove(w->lb, walk_worker_of(v), "it starts again");
		v->gone = true;
		walk_pass(w, 20);
	}
	walk_destroy(w);
}

/* --- the table of models ---------------------------------------------------------------------- */

static struct model_description described = {.version = "1",
					     .batch = true,
					     .n_inputs = 1,
					     .n_outputs = 1,
					     .input = {{"x", DATATYPE_FP32, 2, {-1, 25}}},
					     .output = {{"y", DATATYPE_FP32, 2, {-1, 25}}}};

/* Registers a worker with the description above, of requests of 100 bytes. */
static struct walk_worker *register_described(struct walk *w, uint32_t max_batch)
{
	struct lb_registration r;

	walk_worker_registration(w, &(struct walk_worker_params){.max_batch = max_batch}, &r);
	r.worker.min_request = r.worker.max_request = r.worker.max_reply = 100;
	r.worker.description = &described;
	return walk_worker_register_as(w, &r);
}

static const struct model_entry *echo_of(const struct walk *w)
{
	return lcore_model(w->lb->lcore[0], "echo", 4);
}

static const struct walk_params of_100_bytes = {
	.services = WALK_SERVICE("echo", 8000, "echo", ", max_request: 100, max_reply: 100")};

WALK(a_model_is_told_to_the_lcores_while_a_worker_that_describes_it_serves)
{
	struct walk *w = walk_create(&of_100_bytes);
	struct walk_worker *v = register_described(w, 16), *narrow;

	walk_need(v != NULL, "%s", w->error);
	walk_expect(echo_of(w) == NULL); /* it is joining */
	walk_need(walk_worker_start(v), "it does not start");
	walk_need(echo_of(w) != NULL, "the model is not told");
	walk_expect(strcmp(echo_of(w)->description.input[0].name, "x") == 0);
	walk_expect(echo_of(w)->max_rows == 16);
	narrow = register_described(w, 4);
	walk_need(narrow != NULL && walk_worker_start(narrow), "%s", w->error);
	walk_expect(echo_of(w)->max_rows == 4);
	lb_worker_remove(w->lb, walk_worker_of(narrow), "the test ends it");
	walk_expect(echo_of(w) != NULL && echo_of(w)->max_rows == 16);
	lb_worker_drain(w->lb, walk_worker_of(v));
	walk_expect(echo_of(w) == NULL);
	walk_destroy(w);
}

WALK(an_undescribed_worker_serves_a_model_that_is_not_told)
{
	struct walk *w = walk_create(&of_100_bytes);

	walk_worker(w, NULL);
	walk_expect(echo_of(w) == NULL);
	walk_destroy(w);
}

WALK(a_worker_that_disagrees_is_refused_by_its_tensor)
{
	struct walk *w = walk_create(&of_100_bytes);

	walk_need(register_described(w, 8) != NULL, "%s", w->error);
	described.output[0].datatype = DATATYPE_INT32;
	walk_expect(register_described(w, 8) == NULL);
	walk_expect(strcmp(w->error, "description.outputs[0].datatype: output 'y' is INT32, and "
				     "FP32 in worker 'gpu0' of the same model; stop the workers "
				     "with the other tensors first, or give the model another "
				     "name") == 0);
	described.output[0].datatype = DATATYPE_FP32;
	walk_destroy(w);
}
