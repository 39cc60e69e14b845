#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Byte streams as Triton's clients send them, and answers as they read them: tritonclient (Python) and perf_analyzer (C++) by
HTTP and by gRPC, from their protocol's documents and what their libraries write: order and case of fields, order of members
in JSON, binary tensors behind it, heads that HPACK's tables compress, messages in the order of field numbers.

    triton_streams.py MESSAGES HOST MLP-PORT ECHO-PORT

MESSAGES: the folder with inference_pb2.py, and the model's own answer to a picture, by own_answer.py.
"""
import gzip
import http.client
import json
import os
import socket
import struct
import sys

sys.path[:0] = [sys.argv[1], os.path.dirname(os.path.abspath(__file__)), os.path.join(os.path.dirname(__file__), '..', 'grpc')]
import frames
import hpack
import inference_pb2 as pb

DIRECTORY, HOST, MLP, ECHO = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])


def read(name):
    with open(os.path.join(DIRECTORY, name), 'rb') as file:
        return file.read()


REQUEST, OWN = read('request'), read('reply')


# --- HTTP ---------------------------------------------------------------------------------------------------------------

class Http:
    """A connection that is kept, as all of these clients do."""

    def __init__(self, port, fields):
        self.sock = socket.create_connection((HOST, port), 20)
        self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.port, self.fields = port, fields

    def ask(self, line, *parts, fields=()):
        """Sends the head, then each part of the body by itself. (status, fields, body)"""
        lines = [line + ' HTTP/1.1', *(f.format(host='%s:%d' % (HOST, self.port)) for f in self.fields), *fields, '', '']
        self.sock.sendall('\r\n'.join(lines).encode())
        for part in parts:
            self.sock.sendall(part)
        answer = http.client.HTTPResponse(self.sock, method=line.split()[0])
        answer.begin()
        return answer.status, answer.headers, answer.read()

    def document(self, line, *parts, fields=(), status=200):
        got, _, body = self.ask(line, *parts, fields=fields)
        assert got == status, (line, got, body)
        return json.loads(body) if body else None

    def infer(self, path, text, *tensors, fields=()):
        """(JSON of the answer, its binary tensors by name)"""
        status, head, body = self.ask('POST ' + path, text, *tensors, fields=fields)
        assert status == 200, (status, body[:300])
        # Both read the length of the JSON, whatever the case of the field's name.
        length = int(head['inference-header-content-length'])
        answer, at, of = json.loads(body[:length]), length, {}
        for output in answer['outputs']:
            size = output['parameters']['binary_data_size']
            of[output['name']] = body[at:at + size]
            at += size
        assert at == len(body), (at, len(body))
        return answer, of


def compact(value):
    """As rapidjson writes it: members in the order that they were added, no spaces."""
    return json.dumps(value, separators=(',', ':')).encode()


def python_http():
    """tritonclient.http: geventhttpclient's head; parameters behind the inputs; JSON and tensors in one piece."""
    fields = ['User-Agent: python/gevent-http-client-2.0.11', 'Host: {host}']
    to = Http(MLP, fields)
    assert to.document('GET /v2/health/live') and to.document('GET /v2/health/ready') and to.document('GET /v2/models/mlp/ready')
    assert 'statistics' in to.document('GET /v2')['extensions']
    assert to.document('GET /v2/models/mlp')['inputs'][1]['datatype'] == 'UINT8'
    assert to.document('GET /v2/models/mlp/config')['max_batch_size'] > 1
    assert to.document('GET /v2/models/mlp/stats')['model_stats'][0]['inference_stats']['success']['count'] >= 0
    index = to.document('POST /v2/repository/index', b'{}', fields=['Content-Length: 2'])
    assert [(m['name'], m['state']) for m in index] == [('mlp', 'READY')], index
    tensors = [{'name': 'id', 'shape': [1, 1], 'datatype': 'UINT64', 'parameters': {'binary_data_size': 8}},
               {'name': 'pixels', 'shape': [1, 64], 'datatype': 'UINT8', 'parameters': {'binary_data_size': 64}}]
    asked = {'id': '1', 'inputs': tensors, 'outputs': [{'name': 'class', 'parameters': {'binary_data': True}},
                                                       {'name': 'scores', 'parameters': {'binary_data': True}}],
             'parameters': {'sequence_id': 7, 'sequence_start': True, 'sequence_end': False, 'priority': 2, 'timeout': 5000000}}
    text = compact(asked)
    lengths = ['Inference-Header-Content-Length: %d' % len(text), 'Content-Length: %d' % (len(text) + 72)]
    answer, of = to.infer('/v2/models/mlp/infer', text + REQUEST, fields=lengths)
    assert answer['id'] == '1' and of == {'class': OWN[8:12], 'scores': OWN[12:]}, (answer, of)
    # Names of fields in another case and order, as proxies in between write them; tritonclient.http.aio's own head.
    others = ['host: {host}', 'user-agent: python/gevent-http-client-2.0.11'], [
        'Host: {host}', 'Accept: */*', 'Accept-Encoding: gzip, deflate', 'User-Agent: Python/3.11 aiohttp/3.8.4',
        'Content-Type: application/octet-stream']
    for fields, write in ((others[0], str.lower), (others[0], str.upper), (others[1], str)):
        answer, of = Http(MLP, fields).infer('/v2/models/mlp/infer', text + REQUEST, fields=[write(f) for f in lengths[::-1]])
        assert answer['id'] == '1' and of == {'class': OWN[8:12], 'scores': OWN[12:]}, (answer, of)
    # Without outputs all come in binary; a version in the path.
    asked = {'inputs': tensors, 'parameters': {'binary_data_output': True}}
    text = compact(asked)
    lengths = ['Inference-Header-Content-Length: %d' % len(text), 'Content-Length: %d' % (len(text) + 72)]
    _, of = to.infer('/v2/models/mlp/versions/1/infer', text + REQUEST, fields=lengths)
    assert b''.join(of[name] for name in ('id', 'class', 'scores')) == OWN, of
    # request_compression_algorithm='gzip' is refused, and the connection lives.
    packed = gzip.compress(text + REQUEST)
    status, head, body = to.ask('POST /v2/models/mlp/infer', packed, fields=[
        'Content-Encoding: gzip', 'Inference-Header-Content-Length: %d' % len(text), 'Content-Length: %d' % len(packed)])
    assert (status, head['Accept-Encoding']) == (415, 'identity') and json.loads(body)['error'], (status, body)
    assert to.document('GET /v2/models/x', status=404)['error']
    assert to.document('GET /v2/systemsharedmemory/status', status=501)['error']
    assert to.document('GET /v2/health/live')


def perf_http():
    """perf_analyzer: libcurl's head; `id` and `parameters` first; the tensor in writes of its own."""
    to = Http(ECHO, ['Host: {host}', 'User-Agent: libcurl-agent/1.0', 'Accept: */*'])
    assert to.document('GET /v2/health/ready') and to.document('GET /v2')['name'] == 'doorbell'
    assert to.document('GET /v2/models/echo')['platform'] and to.document('GET /v2/models/echo/config')['name'] == 'echo'

    def counted():
        stats = to.document('GET /v2/models/echo/stats')['model_stats'][0]
        return stats['inference_count'], stats['inference_stats']['success']['count']
    before = counted()
    for n in range(20):
        data = os.urandom(100 + 997 * n)
        text = compact({'id': str(n), 'parameters': {'binary_data_output': True}, 'inputs': [
            {'name': 'input0', 'datatype': 'UINT8', 'shape': [len(data)], 'parameters': {'binary_data_size': len(data)}}]})
        fields = ['Inference-Header-Content-Length: %d' % len(text), 'Content-Type: application/octet-stream',
                  'Content-Length: %d' % (len(text) + len(data))]
        half = len(data) // 2
        answer, of = to.infer('/v2/models/echo/infer', text, data[:half], data[half:], fields=fields)
        assert answer['id'] == str(n) and of == {'output0': data}, answer
    after = counted()
    assert [b - a for a, b in zip(before, after)] == [20, 20], (before, after)


# --- gRPC ---------------------------------------------------------------------------------------------------------------

class Grpc:
    """A channel of gRPC's core: its preface and settings, and heads by HPACK's tables."""

    def __init__(self, port, agent):
        self.to = frames.Client.__new__(frames.Client)
        self.to.sock = socket.create_connection((HOST, port), 20)
        self.to.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.encoder, self.agent, self.stream = hpack.Encoder(), agent, 1
        self.authority = ('%s:%d' % (HOST, port)).encode()
        settings = ((2, 0), (3, 0), (4, 4 << 20), (5, 4 << 20), (6, 16384), (0xfe03, 1))
        self.to.sock.sendall(frames.PREFACE + frames.frame(frames.SETTINGS, 0, 0, b''.join(
            struct.pack('>HI', *setting) for setting in settings)) + frames.frame(frames.WINDOW, 0, 0, struct.pack('>I', 4128769)))

    def head(self, method, timeout):
        fields = [(b':scheme', b'http'), (b':method', b'POST'), (b':authority', self.authority),
                  (b':path', b'/inference.GRPCInferenceService/' + method), (b'te', b'trailers'),
                  (b'content-type', b'application/grpc'), (b'user-agent', self.agent),
                  (b'grpc-accept-encoding', b'identity, deflate, gzip')]
        return self.encoder.head(fields + ([(b'grpc-timeout', timeout)] if timeout else []))

    def send(self, method, *messages, timeout=None):
        """The call's number. Messages in DATA frames of 16 KiB; END_STREAM with the last one."""
        stream, self.stream = self.stream, self.stream + 2
        body = b''.join(b'\0' + struct.pack('>I', len(m)) + m for m in messages)
        parts = [body[i:i + 16384] for i in range(0, len(body), 16384)]
        self.to.sock.sendall(frames.frame(frames.HEADERS, 4, stream, self.head(method, timeout)) + b''.join(
            frames.frame(frames.DATA, i == len(parts) - 1, stream, part) for i, part in enumerate(parts)))
        return stream

    def answers(self, stream):
        """The messages of an answer, until its trailers. The window is given back, as the core does."""
        data, heads = b'', 0
        while heads < 2:
            kind, of, payload = self.to.until(frames.DATA, frames.HEADERS, frames.RST)
            assert of == stream and kind != frames.RST, (kind, of, payload)
            heads += kind == frames.HEADERS
            if kind == frames.DATA:
                data += payload
                self.to.sock.sendall(b''.join(frames.frame(frames.WINDOW, 0, n, struct.pack('>I', len(payload)))
                                              for n in (0, stream) if payload))
        messages = []
        while data:
            length = struct.unpack('>I', data[1:5])[0]
            messages.append(data[5:5 + length])
            data = data[5 + length:]
        return messages

    def call(self, method, message, response, timeout=None):
        answer, = self.answers(self.send(method, message.SerializeToString(), timeout=timeout))
        return response.FromString(answer)


def grpc_picture():
    request = pb.ModelInferRequest(model_name='mlp', id='7')
    request.inputs.add(name='id', datatype='UINT64', shape=[1, 1])
    request.inputs.add(name='pixels', datatype='UINT8', shape=[1, 64])
    request.outputs.add(name='class')
    request.outputs.add(name='scores')
    request.raw_input_contents.extend([REQUEST[:8], REQUEST[8:]])
    return request


def python_grpc():
    """tritonclient.grpc: documents, a call with parameters and a deadline, a stream."""
    to = Grpc(MLP, b'grpc-python/1.60.0 grpc-c/37.0.0 (linux; chttp2)')
    assert to.call(b'ServerLive', pb.ServerLiveRequest(), pb.ServerLiveResponse).live
    assert to.call(b'ServerReady', pb.ServerReadyRequest(), pb.ServerReadyResponse).ready
    assert to.call(b'ModelReady', pb.ModelReadyRequest(name='mlp'), pb.ModelReadyResponse).ready
    assert 'statistics' in to.call(b'ServerMetadata', pb.ServerMetadataRequest(), pb.ServerMetadataResponse).extensions
    index = to.call(b'RepositoryIndex', pb.RepositoryIndexRequest(), pb.RepositoryIndexResponse)
    assert [(m.name, m.state) for m in index.models] == [('mlp', 'READY')], index
    request = grpc_picture()
    request.parameters['sequence_id'].int64_param = 7
    request.parameters['sequence_start'].bool_param = True
    request.parameters['sequence_end'].bool_param = False
    request.parameters['priority'].uint64_param = 2
    request.parameters['timeout'].int64_param = 5000000
    for _ in range(3):
        answer = to.call(b'ModelInfer', request, pb.ModelInferResponse, timeout=b'4999999u')
        assert answer.id == '7' and list(answer.raw_output_contents) == [OWN[8:12], OWN[12:]], answer
    stream = to.send(b'ModelStreamInfer', *[grpc_picture().SerializeToString()] * 3)
    answers = [pb.ModelStreamInferResponse.FromString(m) for m in to.answers(stream)]
    assert [list(a.infer_response.raw_output_contents) for a in answers] == [[OWN[8:12], OWN[12:]]] * 3, answers


def perf_grpc():
    """perf_analyzer: what it asks before it measures, tensors of several frames, and its statistics."""
    to = Grpc(ECHO, b'grpc-c++/1.54.3 grpc-c/31.0.0 (linux; chttp2)')
    assert to.call(b'ServerReady', pb.ServerReadyRequest(), pb.ServerReadyResponse).ready
    assert to.call(b'ModelMetadata', pb.ModelMetadataRequest(name='echo'), pb.ModelMetadataResponse).inputs[0].shape == [-1]
    assert to.call(b'ModelConfig', pb.ModelConfigRequest(name='echo'), pb.ModelConfigResponse).config.name == 'echo'

    def counted():
        stats = to.call(b'ModelStatistics', pb.ModelStatisticsRequest(name='echo'), pb.ModelStatisticsResponse).model_stats
        return stats[0].inference_count, stats[0].inference_stats.success.count
    before = counted()
    for n in range(10):
        data = os.urandom(1 + 11113 * n)
        request = pb.ModelInferRequest(model_name='echo', id=str(n))
        request.inputs.add(name='input0', datatype='UINT8', shape=[len(data)])
        request.outputs.add(name='output0')
        request.raw_input_contents.append(data)
        answer = to.call(b'ModelInfer', request, pb.ModelInferResponse)
        assert answer.id == str(n) and list(answer.raw_output_contents) == [data], len(data)
    after = counted()
    assert [b - a for a, b in zip(before, after)] == [10, 10], (before, after)


for step in (python_http, perf_http, python_grpc, perf_grpc):
    step()
