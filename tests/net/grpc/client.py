#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""What the tests of gRPC say to a load balancer, by Google's library.

    client.py MESSAGES HOST STEP

MESSAGES: the folder with inference_pb2.py. Ends with 0 if all of the step was as expected.
"""
import os
import signal
import socket
import struct
import sys
import threading
import time

sys.path.insert(0, sys.argv[1])
import frames
import grpc
import inference_pb2 as pb

HOST = sys.argv[2]
MLP, ECHO, BOTH, SECURED = (HOST + port for port in (':8501', ':8502', ':8503', ':8504'))
SERVICE = '/inference.GRPCInferenceService/'
ROWS = '005d910000dfaf5003f20b8004c008800580098004b01c7002e5ac00006da000'
PIXELS = [int(pixel, 17) for pixel in ROWS]
OPTIONS = [('grpc.max_receive_message_length', 64 << 20), ('grpc.max_send_message_length', 64 << 20)]


def channel(address, **options):
    return grpc.insecure_channel(address, options=OPTIONS + list(options.items()))


def method(to, name, response, path=SERVICE):
    return to.unary_unary(path + name, request_serializer=lambda m: m.SerializeToString(),
                          response_deserializer=response.FromString)


def infer(to):
    return method(to, 'ModelInfer', pb.ModelInferResponse)


def tensor(request, name, datatype, shape):
    return request.inputs.add(name=name, datatype=datatype, shape=shape)


def picture(typed, number=18446744073709551615):
    request = pb.ModelInferRequest(model_name='mlp', id='seven')
    first, second = tensor(request, 'id', 'UINT64', [1, 1]), tensor(request, 'pixels', 'UINT8', [1, 64])
    if typed:
        first.contents.uint64_contents.append(number)
        second.contents.uint_contents.extend(PIXELS)
    else:
        request.raw_input_contents.extend([struct.pack('<Q', number), bytes(PIXELS)])
    return request


def echo(data, name='input0'):
    request = pb.ModelInferRequest(model_name='echo')
    tensor(request, name, 'UINT8', [len(data)])
    request.raw_input_contents.append(data)
    return request


def refused(code, call, *arguments, detail=None, **options):
    try:
        answer = call(*arguments, timeout=options.pop('timeout', 20), **options)
    except grpc.RpcError as error:
        assert error.code() == code, (error.code(), error.details())
        assert detail is None or detail in error.details(), error.details()
        return error
    raise AssertionError('no %s: %s' % (code, str(answer)[:200]))


def step_empty():
    """Without workers."""
    with channel(MLP) as to:
        assert method(to, 'ServerLive', pb.ServerLiveResponse)(pb.ServerLiveRequest(), timeout=20).live
        assert not method(to, 'ServerReady', pb.ServerReadyResponse)(pb.ServerReadyRequest(), timeout=20).ready
        health = method(to, 'Check', pb.HealthCheckResponse, '/grpc.health.v1.Health/')
        assert health(pb.HealthCheckRequest(), timeout=20).status == 2
        refused(grpc.StatusCode.UNAVAILABLE, infer(to), picture(False), detail="the model 'mlp' has no workers")
        refused(grpc.StatusCode.UNAVAILABLE, method(to, 'ModelMetadata', pb.ModelMetadataResponse),
                pb.ModelMetadataRequest(name='mlp'))


def check_picture(answer, number=18446744073709551615):
    assert answer.model_name == 'mlp' and answer.id == 'seven', answer
    described = [(o.name, o.datatype, list(o.shape)) for o in answer.outputs]
    assert described == [('id', 'UINT64', [1, 1]), ('class', 'UINT32', [1, 1]), ('scores', 'FP32', [1, 10])], described
    assert struct.unpack('<Q', answer.raw_output_contents[0]) == (number,)
    return b''.join(answer.raw_output_contents)


def step_infer():
    own = open(os.path.join(sys.argv[1], 'reply'), 'rb').read()
    with channel(MLP) as to:
        for typed in (False, True):
            assert check_picture(infer(to)(picture(typed), timeout=20)) == own, typed
        asked = picture(False)
        asked.outputs.add(name='scores')
        asked.outputs.add(name='class')
        answer = infer(to)(asked, timeout=20)
        assert [o.name for o in answer.outputs] == ['scores', 'class']
        assert list(answer.raw_output_contents) == [own[12:], own[8:12]]
        assert method(to, 'ServerReady', pb.ServerReadyResponse)(pb.ServerReadyRequest(), timeout=20).ready
        ready = method(to, 'ModelReady', pb.ModelReadyResponse)
        assert ready(pb.ModelReadyRequest(name='mlp', version='1'), timeout=20).ready
        meta = method(to, 'ModelMetadata', pb.ModelMetadataResponse)(pb.ModelMetadataRequest(name='mlp'), timeout=20)
        assert [(t.name, t.datatype, list(t.shape)) for t in meta.inputs] == [
            ('id', 'UINT64', [-1, 1]), ('pixels', 'UINT8', [-1, 64])], meta
        config = method(to, 'ModelConfig', pb.ModelConfigResponse)(pb.ModelConfigRequest(name='mlp'), timeout=20).config
        assert config.max_batch_size == 32 and [list(t.dims) for t in config.output] == [[1], [1], [10]], config
        server = method(to, 'ServerMetadata', pb.ServerMetadataResponse)(pb.ServerMetadataRequest(), timeout=20)
        assert server.name == 'doorbell', server
        health = method(to, 'Check', pb.HealthCheckResponse, '/grpc.health.v1.Health/')
        assert health(pb.HealthCheckRequest(), timeout=20).status == 1


def watch(until):
    """Calls of Watch, until what they were told is as <until> wants it: all of an address, a model, and one that is not there."""
    calls = [grpc.insecure_channel(address).unary_stream(
        '/grpc.health.v1.Health/Watch', request_serializer=lambda m: m.SerializeToString(),
        response_deserializer=pb.HealthCheckResponse.FromString)(pb.HealthCheckRequest(service=name), timeout=120)
             for address, name in ((MLP, ''), (BOTH, 'echo'), (BOTH, 'absent'))]
    said = [[], [], []]

    def note(place, what):
        said[place].append(what)
        print(place, what, flush=True)
        if until(said):
            for call in calls:
                call.cancel()

    def listen(place):
        try:
            for answer in calls[place]:
                note(place, answer.status)
        except grpc.RpcError as error:
            if error.code() != grpc.StatusCode.CANCELLED:
                note(place, error.code())

    threads = [threading.Thread(target=listen, args=(place,)) for place in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert until(said), said


def step_watch():
    """In the background, from before there are workers."""
    watch(lambda said: said == [[2, 1], [2, 1], [3]])


def step_watch_end():
    """In the background, until the load balancer stops; the worker of echo is halted then, and may have been lost."""
    end = grpc.StatusCode.UNAVAILABLE
    watch(lambda said: said == [[1, 2, end], [1, 2, end], [3, 2, end]])


def step_errors():
    code = grpc.StatusCode
    with channel(MLP) as to:
        call = infer(to)
        refused(code.NOT_FOUND, call, pb.ModelInferRequest(model_name='no%\u00e4'), detail='no%\u00e4')
        asked = picture(False)
        asked.model_version = '9'
        refused(code.NOT_FOUND, call, asked, detail="of version 9")
        asked = picture(False)
        asked.inputs[1].shape[1] = 63
        refused(code.INVALID_ARGUMENT, call, asked, detail='[-1,64]')
        asked = picture(False)
        asked.raw_input_contents[1] += b'x'
        refused(code.INVALID_ARGUMENT, call, asked)
        asked = picture(True)
        asked.inputs[1].contents.uint_contents[3] = 256
        refused(code.INVALID_ARGUMENT, call, asked)
        refused(code.INVALID_ARGUMENT, call, pb.ModelInferRequest(model_name='mlp'), detail='no inputs')
        refused(code.UNIMPLEMENTED, method(to, 'RepositoryModelLoad', pb.ServerLiveResponse), pb.ServerLiveRequest())
        asked = picture(False)
        asked.id = '0' * 100  # without repetitions the library does not compress it
        refused(code.UNIMPLEMENTED, call, asked, compression=grpc.Compression.Gzip,
                detail='compressed messages are not taken')
        refused(code.NOT_FOUND, method(to, 'ModelReady', pb.ModelReadyResponse), pb.ModelReadyRequest(name='x'))
        refused(code.NOT_FOUND, method(to, 'Check', pb.HealthCheckResponse, '/grpc.health.v1.Health/'),
                pb.HealthCheckRequest(service='x'))
        # The connection is none the worse.
        check_picture(call(picture(False), timeout=20))
    with channel(ECHO) as to:
        refused(code.RESOURCE_EXHAUSTED, infer(to), echo(bytes((4 << 20) + 1)))
        assert infer(to)(echo(b'after'), timeout=20).raw_output_contents[0] == b'after'


def step_large():
    """4 MiB there and back, as one raw tensor; several at once."""
    data = [os.urandom(4 << 20) for _ in range(3)]
    with channel(ECHO) as to:
        for future, sent in [(infer(to).future(echo(d), timeout=60), d) for d in data]:
            assert future.result().raw_output_contents[0] == sent
        for size in (1, 100, 4096, 16379, 16384, 65535, 65536, 200000):
            sent = os.urandom(size)
            assert infer(to)(echo(sent), timeout=20).raw_output_contents[0] == sent, size


def step_typed():
    """4,000 elements, which do not come in one piece."""
    data = os.urandom(70000)
    asked = pb.ModelInferRequest(model_name='echo')
    tensor(asked, 'input0', 'UINT8', [len(data)]).contents.uint_contents.extend(data)
    with channel(ECHO) as to:
        assert infer(to)(asked, timeout=20).raw_output_contents[0] == data


def step_many():
    """Calls at once over one connection, then one after the other."""
    with channel(MLP) as to:
        call = infer(to)
        for _ in range(5):
            futures = [(call.future(picture(n % 2, n), timeout=60), n) for n in range(100)]
            for future, n in futures:
                check_picture(future.result(), n)
        for n in range(200):
            check_picture(call(picture(False, n), timeout=20), n)


def step_deadline():
    """The worker is halted."""
    with channel(ECHO) as to:
        call, asked = infer(to), echo(b'slow')
        refused(grpc.StatusCode.DEADLINE_EXCEEDED, call, asked, timeout=0.15)
        future = call.future(echo(b'cancelled'), timeout=20)
        # It was sent before this one, which is answered.
        assert method(to, 'ServerLive', pb.ServerLiveResponse)(pb.ServerLiveRequest(), timeout=20).live
        future.cancel()
        assert method(to, 'ServerLive', pb.ServerLiveResponse)(pb.ServerLiveRequest(), timeout=20).live
        # A request whose time is over before the worker goes on: the client waits longer than it asks for.
        asked.parameters['timeout'].int64_param = 50000
        late = call.future(asked, timeout=20)
        assert method(to, 'ServerLive', pb.ServerLiveResponse)(pb.ServerLiveRequest(), timeout=20).live
        time.sleep(0.2)
        os.kill(int(os.environ['WORKER']), signal.SIGCONT)
        assert late.exception().code() == grpc.StatusCode.DEADLINE_EXCEEDED, late.exception()


def step_after():
    with channel(ECHO) as to:
        assert infer(to)(echo(b'after'), timeout=20).raw_output_contents[0] == b'after'


def step_stream():
    with channel(MLP) as to:
        call = to.stream_stream(SERVICE + 'ModelStreamInfer', request_serializer=lambda m: m.SerializeToString(),
                                response_deserializer=pb.ModelStreamInferResponse.FromString)
        asked = [picture(n % 2, n) for n in range(20)]
        asked[7].inputs[1].shape[1] = 63
        answers = list(call(iter(asked), timeout=20))
        assert len(answers) == 20
        assert [a.error_message for a in answers if a.error_message] == [
            "inputs[1] ('pixels'): the model takes the shape [-1,64]"]
        numbers = sorted(struct.unpack('<Q', a.infer_response.raw_output_contents[0])[0]
                         for a in answers if not a.error_message)
        assert numbers == [n for n in range(20) if n != 7], numbers
        # One after the other: an answer comes while the call goes on.
        more, received = threading.Semaphore(0), []

        def ask():
            for n in range(5):
                yield picture(False, n)
                assert more.acquire(timeout=20)
        for answer in call(ask(), timeout=20):
            received.append(struct.unpack('<Q', answer.infer_response.raw_output_contents[0])[0])
            more.release()
        assert received == list(range(5)), received


def late_echo():
    request = echo(b'late')
    request.ClearField('model_name')
    return request.SerializeToString() + pb.ModelInferRequest(model_name='echo').SerializeToString()


def late_name(to):
    return to.unary_unary(SERVICE + 'ModelInfer', request_serializer=lambda m: m,
                          response_deserializer=pb.ModelInferResponse.FromString)


def step_models():
    """Two services with one address: over one connection, calls at once and messages of one call."""
    with channel(BOTH) as to:
        call, sent = infer(to), os.urandom(100000)
        futures = [(call.future(picture(False, n), timeout=60), call.future(echo(sent), timeout=60), n) for n in range(20)]
        for one, other, n in futures:
            check_picture(one.result(), n)
            assert other.result().raw_output_contents[0] == sent
        refused(grpc.StatusCode.NOT_FOUND, call, pb.ModelInferRequest(model_name='x'), detail="no model 'x'")
        ready = method(to, 'ModelReady', pb.ModelReadyResponse)
        for name in ('mlp', 'echo'):
            assert ready(pb.ModelReadyRequest(name=name), timeout=20).ready, name
            meta = method(to, 'ModelMetadata', pb.ModelMetadataResponse)(pb.ModelMetadataRequest(name=name), timeout=20)
            assert meta.name == name, meta
        # Each service has limits of its own.
        large = picture(False)
        large.inputs[1].shape[1] = 100
        large.raw_input_contents[1] = bytes(100)
        refused(grpc.StatusCode.INVALID_ARGUMENT, call, large)
        stream = to.stream_stream(SERVICE + 'ModelStreamInfer', request_serializer=lambda m: m.SerializeToString(),
                                  response_deserializer=pb.ModelStreamInferResponse.FromString)
        answers = list(stream(iter([picture(True), echo(b'two')] * 5), timeout=20))
        names = sorted(a.infer_response.model_name for a in answers)
        assert names == ['echo'] * 5 + ['mlp'] * 5, answers
        # The name behind the inputs: no library writes it so.
        refused(grpc.StatusCode.UNIMPLEMENTED, late_name(to), late_echo(), detail='name its model first')
    with channel(ECHO) as to:
        assert late_name(to)(late_echo(), timeout=20).raw_output_contents[0] == b'late'


def step_secured():
    """By TLS: small and large calls, many at once."""
    with open(os.path.join(sys.argv[1], 'service.pem'), 'rb') as file:
        trusted = grpc.ssl_channel_credentials(file.read())
    sent = [os.urandom(size) for size in (1, 1000, 16384, 100000, 1 << 20, 4 << 20)]
    with grpc.secure_channel(SECURED, trusted, options=OPTIONS) as to:
        call = infer(to)
        for data in sent:
            assert call(echo(data), timeout=60).raw_output_contents[0] == data, len(data)
        for future, data in [(call.future(echo(data), timeout=60), data) for data in sent * 3]:
            assert future.result().raw_output_contents[0] == data, len(data)
        refused(grpc.StatusCode.NOT_FOUND, call, picture(False))
        assert method(to, 'ServerReady', pb.ServerReadyResponse)(pb.ServerReadyRequest(), timeout=20).ready


def message_of(request):
    data = request.SerializeToString()
    return b'\0' + struct.pack('>I', len(data)) + data


def answered(to, stream, length):
    """The message of that call, in however many frames, and what its trailers say."""
    data, sizes = b'', []
    while True:
        kind, of, payload = to.until(frames.DATA, frames.HEADERS)
        assert of == stream, of
        if kind == frames.HEADERS and sizes:
            assert len(data) == 5 + struct.unpack('>I', data[1:5])[0], len(data)
            answer = pb.ModelInferResponse.FromString(data[5:])
            assert len(answer.raw_output_contents[0]) == length
            return answer.raw_output_contents[0], sizes
        if kind == frames.DATA:
            data += payload
            sizes.append(len(payload))


def step_frames():
    """Frames as libraries do not cut them."""
    head = frames.head(b'ModelInfer')
    sent = os.urandom(1000)
    body = message_of(echo(sent))
    to = frames.Client(HOST, 8502)
    to.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    # Byte by byte, from the preface on.
    slow = frames.Client.__new__(frames.Client)
    slow.sock = socket.create_connection((HOST, 8502), 10)
    slow.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    whole = (frames.PREFACE + frames.frame(frames.SETTINGS, 0, 0) + frames.frame(frames.HEADERS, 4, 1, head) +
             frames.frame(frames.DATA, 1, 1, body))
    for n in range(len(whole)):
        slow.sock.sendall(whole[n:n + 1])
    assert answered(slow, 1, 1000)[0] == sent
    # DATA of one byte each, padded; a frame without any; END_STREAM in one of its own.
    parts = b''.join(frames.frame(frames.DATA, 8, 1, b'\3' + body[n:n + 1] + bytes(3)) for n in range(len(body)))
    to.sock.sendall(frames.frame(frames.HEADERS, 4, 1, head) + parts + frames.frame(frames.DATA, 0, 1) +
                    frames.frame(frames.DATA, 1, 1))
    assert answered(to, 1, 1000)[0] == sent
    # Two calls whose frames alternate.
    other = os.urandom(1000)
    second = message_of(echo(other))
    assert len(second) == len(body)
    mixed = b''
    for n in range(0, len(body), 100):
        end = n + 100 >= len(body)
        mixed += frames.frame(frames.DATA, end, 3, body[n:n + 100]) + frames.frame(frames.DATA, end, 5, second[n:n + 100])
    to.sock.sendall(frames.frame(frames.HEADERS, 4, 3, head) + frames.frame(frames.HEADERS, 4, 5, head) + mixed)
    answers = {}
    while len(answers) < 2:
        _, stream, payload = to.until(frames.DATA)
        answers[stream] = payload[-1000:]
    assert answers == {3: sent, 5: other}
    # A client that takes 100 bytes at a time.
    narrow = frames.Client(HOST, 8502)
    narrow.sock.sendall(frames.frame(frames.SETTINGS, 0, 0, struct.pack('>HI', 4, 100)) +
                        frames.frame(frames.HEADERS, 4, 1, head) + frames.frame(frames.DATA, 1, 1, body))
    data = narrow.until(frames.DATA)[2]
    assert len(data) == 100
    while len(data) < 1000:
        narrow.sock.sendall(frames.frame(frames.WINDOW, 0, 1, struct.pack('>I', 100)))
        part = narrow.until(frames.DATA)[2]
        assert len(part) <= 100
        data += part
    assert sent[:900] in data
    # A call that is given up while its answer waits for the window: the next one is answered.
    narrow.sock.sendall(frames.frame(frames.HEADERS, 4, 3, head) + frames.frame(frames.DATA, 1, 3, body))
    while narrow.until(frames.DATA)[1] != 3:
        pass
    narrow.sock.sendall(frames.frame(frames.RST, 0, 3, struct.pack('>I', 8)) +
                        frames.frame(frames.SETTINGS, 0, 0, struct.pack('>HI', 4, 65535)) +
                        frames.frame(frames.HEADERS, 4, 5, head) + frames.frame(frames.DATA, 1, 5, body))
    while True:
        _, stream, payload = narrow.until(frames.DATA)
        if stream == 5:
            assert payload.endswith(sent)
            break
    # A message that is cut.
    to.sock.sendall(frames.frame(frames.HEADERS, 4, 7, head) + frames.frame(frames.DATA, 1, 7, body[:-1]))
    trailers = to.until(frames.HEADERS)
    while trailers[1] != 7:
        trailers = to.until(frames.HEADERS)
    # No gRPC, but HTTP/2.
    to.sock.sendall(frames.frame(frames.HEADERS, 5, 9, head.replace(b'application/grpc', b'application/json')))
    trailers = to.until(frames.HEADERS)
    while trailers[1] != 9:
        trailers = to.until(frames.HEADERS)


def step_drain():
    """A call is under way when the load balancer is told to stop: GOAWAY, the answer, and the end."""
    message = message_of(echo(b'last'))
    to = frames.Client(HOST, 8502)
    to.sock.sendall(frames.frame(frames.HEADERS, 4, 1, frames.head(b'ModelInfer')) +
                    frames.frame(frames.DATA, 1, 1, message) +
                    frames.frame(frames.PING, 0, 0, b'it came.'))
    to.until(frames.PING)
    os.kill(int(os.environ['LB']), signal.SIGTERM)
    assert to.until(frames.GOAWAY)[2][:8] == struct.pack('>II', 1, 0)
    os.kill(int(os.environ['WORKER']), signal.SIGCONT)
    answer = to.until(frames.DATA)[2]
    assert answer.endswith(b'last'), answer
    to.until(frames.HEADERS)
    try:
        to.until(frames.PING)
    except EOFError:
        return
    raise AssertionError('the connection does not end')


globals()['step_' + sys.argv[3]]()
