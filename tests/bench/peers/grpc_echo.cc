/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A server of gRPC for the bench kserve-peers: answers ModelInfer with the tensor of the request,
 * as a model that echoes would. It is made for speed: messages are taken as bytes, of which the
 * few fields that matter are read by hand, and the tensor goes back where it lies.
 *
 *   bench-grpc-echo ADDRESS:PORT callback          gRPC's own threads
 *   bench-grpc-echo ADDRESS:PORT async THREADS     a completion queue for each thread
 *   bench-grpc-echo ADDRESS:PORT ask FILE          asks once, and prints the answer; FILE: a
 * message with its prefix, as h2load sends it
 */
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>

namespace
{

constexpr char kMethod[] = "/inference.GRPCInferenceService/ModelInfer";
/* Calls that a completion queue waits for at once. */
constexpr int kWaiting = 64;

bool Varint(const uint8_t *&at, const uint8_t *end, uint64_t &value)
{
	value = 0;
	for (unsigned shift = 0; at < end && shift < 64; shift += 7) {
		uint8_t byte = *at++;

		value |= static_cast<uint64_t>(byte & 0x7f) << shift;
		if (byte < 0x80)
			return true;
	}
	return false;
}

void PutVarint(std::string &to, uint64_t value)
{
	for (; value >= 0x80; value >>= 7)
		to.push_back(static_cast<char>(value | 0x80));
	to.push_back(static_cast<char>(value));
}

void PutField(std::string &to, char tag, const std::string &value)
{
	to.push_back(tag);
	PutVarint(to, value.size());
	to += value;
}

/* The parts of a ModelInferRequest that an answer has; the tensor is field 7. */
struct Request {
	std::string model;
	size_t tensor = 0, length = 0;
};

bool Read(const grpc::Slice &message, Request &request)
{
	const uint8_t *start = message.begin(), *at = start, *end = message.end();
	uint64_t tag, length;

	while (at < end) {
		if (!Varint(at, end, tag) || (tag & 7) != 2 || !Varint(at, end, length) ||
		    length > static_cast<uint64_t>(end - at))
			return false;
		if (tag >> 3 == 1)
			request.model.assign(reinterpret_cast<const char *>(at), length);
		if (tag >> 3 == 7) {
			request.tensor = at - start;
			request.length = length;
		}
		at += length;
	}
	return request.length > 0;
}

/* ModelInferResponse: model, one output of bytes, and then the tensor. */
std::string Head(const Request &request)
{
	std::string head, output, shape;

	PutField(head, 0x0a, request.model);
	PutField(output, 0x0a, "output0");
	PutField(output, 0x12, "UINT8");
	PutVarint(shape, request.length);
	PutField(output, 0x1a, shape);
	PutField(head, 0x2a, output);
	head.push_back(0x32);
	PutVarint(head, request.length);
	return head;
}

grpc::Status Answer(const grpc::ByteBuffer &asked, grpc::ByteBuffer &answer)
{
	Request request;
	grpc::Slice whole;

	if (!asked.TrySingleSlice(&whole).ok() && !asked.DumpToSingleSlice(&whole).ok())
		return grpc::Status(grpc::StatusCode::INTERNAL, "no message");
	if (!Read(whole, request))
		return grpc::Status(grpc::StatusCode::INVALID_ARGUMENT, "no ModelInferRequest");
	grpc::Slice parts[] = {grpc::Slice(Head(request)),
			       whole.sub(request.tensor, request.tensor + request.length)};
	grpc::ByteBuffer made(parts, 2);

	answer.Swap(&made);
	return grpc::Status::OK;
}

/* --- gRPC's threads ----------------------------------------------------------------------------
 */

class Reactor : public grpc::ServerGenericBidiReactor
{
      public:
	Reactor()
	{
		StartRead(&asked_);
	}
	void OnReadDone(bool ok) override
	{
		grpc::Status status(grpc::StatusCode::INVALID_ARGUMENT, "no message");

		if (ok)
			status = Answer(asked_, answer_);
		if (status.ok())
			StartWriteAndFinish(&answer_, grpc::WriteOptions(), status);
		else
			Finish(status);
	}
	void OnDone() override
	{
		delete this;
	}

      private:
	grpc::ByteBuffer asked_, answer_;
};

class Service : public grpc::CallbackGenericService
{
	grpc::ServerGenericBidiReactor *
	CreateReactor(grpc::GenericCallbackServerContext *context) override
	{
		if (context->method() != kMethod)
			return grpc::CallbackGenericService::CreateReactor(context);
		return new Reactor;
	}
};

void ServeCallback(const std::string &address)
{
	Service service;
	grpc::ServerBuilder builder;

	builder.AddListeningPort(address, grpc::InsecureServerCredentials());
	builder.SetMaxReceiveMessageSize(-1);
	builder.RegisterCallbackGenericService(&service);
	builder.BuildAndStart()->Wait();
}

/* --- completion queues -------------------------------------------------------------------------
 */

struct Call {
	Call(grpc::AsyncGenericService *service, grpc::ServerCompletionQueue *queue)
	    : service(service), queue(queue), stream(&context)
	{
		service->RequestCall(&context, &stream, queue, queue, this);
	}
	/* The next thing of this call. False: it is over. */
	bool Proceed(bool ok)
	{
		grpc::Status status;

		switch (state++) {
		case 0:
			if (!ok)
				return false;
			new Call(service, queue);
			stream.Read(&asked, this);
			return true;
		case 1:
			status = ok && context.method() == kMethod
					 ? Answer(asked, answer)
					 : grpc::Status(grpc::StatusCode::UNIMPLEMENTED, "");
			if (status.ok())
				stream.WriteAndFinish(answer, grpc::WriteOptions(), status, this);
			else
				stream.Finish(status, this);
			return true;
		default:
			return false;
		}
	}

	grpc::AsyncGenericService *service;
	grpc::ServerCompletionQueue *queue;
	grpc::GenericServerContext context;
	grpc::GenericServerAsyncReaderWriter stream;
	grpc::ByteBuffer asked, answer;
	int state = 0;
};

void Poll(grpc::ServerCompletionQueue *queue)
{
	void *tag;
	bool ok;

	while (queue->Next(&tag, &ok)) {
		Call *call = static_cast<Call *>(tag);

		if (!call->Proceed(ok))
			delete call;
	}
}

void ServeAsync(const std::string &address, int threads)
{
	grpc::AsyncGenericService service;
	grpc::ServerBuilder builder;
	std::vector<std::unique_ptr<grpc::ServerCompletionQueue>> queues;
	std::vector<std::thread> pollers;

	builder.AddListeningPort(address, grpc::InsecureServerCredentials());
	builder.SetMaxReceiveMessageSize(-1);
	builder.RegisterAsyncGenericService(&service);
	for (int i = 0; i < threads; i++)
		queues.push_back(builder.AddCompletionQueue());
	std::unique_ptr<grpc::Server> server = builder.BuildAndStart();

	for (auto &queue : queues) {
		for (int i = 0; i < kWaiting; i++)
			new Call(&service, queue.get());
		pollers.emplace_back(Poll, queue.get());
	}
	for (std::thread &poller : pollers)
		poller.join();
}

/* --- one call ----------------------------------------------------------------------------------
 */

int Ask(const std::string &address, const char *path)
{
	constexpr size_t prefix = 5;
	std::ifstream file(path, std::ios::binary);
	std::string message((std::istreambuf_iterator<char>(file)),
			    std::istreambuf_iterator<char>());
	grpc::ChannelArguments arguments;

	if (message.size() <= prefix)
		return 2;
	arguments.SetMaxReceiveMessageSize(-1);
	grpc::GenericStub stub(
		grpc::CreateCustomChannel(address, grpc::InsecureChannelCredentials(), arguments));
	grpc::Slice slice(message.data() + prefix, message.size() - prefix);
	grpc::ByteBuffer asked(&slice, 1), answer;
	grpc::ClientContext context;
	grpc::CompletionQueue queue;
	grpc::Status status;
	std::vector<grpc::Slice> slices;
	void *tag;
	bool ok;

	auto call = stub.PrepareUnaryCall(&context, kMethod, asked, &queue);
	call->StartCall();
	call->Finish(&answer, &status, nullptr);
	queue.Next(&tag, &ok);
	if (!status.ok() || !answer.Dump(&slices).ok()) {
		fprintf(stderr, "status %d: %s\n", status.error_code(),
			status.error_message().c_str());
		return 1;
	}
	for (const grpc::Slice &part : slices)
		fwrite(part.begin(), 1, part.size(), stdout);
	return 0;
}

} // namespace

int main(int argc, char **argv)
{
	if (argc == 3 && strcmp(argv[2], "callback") == 0)
		ServeCallback(argv[1]);
	else if (argc == 4 && strcmp(argv[2], "async") == 0)
		ServeAsync(argv[1], atoi(argv[3]));
	else if (argc == 4 && strcmp(argv[2], "ask") == 0)
		return Ask(argv[1], argv[3]);
	else
		return 2;
}
