#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Replies in pieces, as clients of HTTP and gRPC see them.

    streams.py MESSAGES HOST STEP

MESSAGES: the folder with inference_pb2.py. Ends with 0 if all of the step was as expected.
"""
import http.client
import json
import os
import signal
import socket
import struct
import sys
import time

sys.path.insert(0, sys.argv[1])
import grpc
import inference_pb2 as pb

HOST = sys.argv[2]
PATH = '/v2/models/words/'
TEXT = 'to be, or not to be: that is the question'
# Every length of a character, some escaped, some words that are long.
MANY = ' '.join(['a\u00e9\u4e2d\U0001f600"\\\n\t' + 'x' * (n % 200) for n in range(1500)])


def post(endpoint, text, parameters=None, connection=None, ascii=True, **more):
    body = json.dumps(dict({'text_input': text, 'parameters': parameters or {}}, **more), ensure_ascii=ascii)
    connection = connection or http.client.HTTPConnection(HOST, 8501, timeout=20)
    connection.request('POST', PATH + endpoint, body.encode())
    return connection.getresponse()


def events(answer):
    """(seconds since the first line, event) as they come; None for a comment."""
    begin = time.monotonic()
    while True:
        line = answer.readline()
        if not line:
            return
        assert answer.readline() == b'\n', line
        assert line == b':\n' or line.startswith(b'data: '), line
        yield time.monotonic() - begin, None if line == b':\n' else json.loads(line[6:])


def told(answer):
    """The events without comments."""
    assert answer.status == 200, (answer.status, answer.read())
    assert answer.getheader('Content-Type') == 'text/event-stream', answer.getheaders()
    return [event for _, event in events(answer) if event is not None]


def expect_error(found, error):
    assert list(found) == ['error'] and error in found['error'], found


def expect_refused(answer, status, error):
    body = answer.read()
    assert answer.status == status, (answer.status, body)
    expect_error(json.loads(body), error)


def step_words():
    kept = http.client.HTTPConnection(HOST, 8501, timeout=20)
    for text in (TEXT, 'one', '', ' ', '  two  spaces  ', MANY, '\u4e2d' * 70000):
        for ascii in (True, False):
            found = told(post('generate_stream', text, connection=kept, ascii=ascii, id='seven'))
            assert ''.join(event['text_output'] for event in found) == text, text[:100]
            assert all(event['model_name'] == 'words' and event['model_version'] == '1' and event['id'] == 'seven'
                       for event in found), found[:2]
            assert len(text) > 1000 or len(found) == max(1, len(text.split()) + (text.strip() != '' and text.endswith(' '))), found
            whole = post('generate', text, connection=kept, ascii=ascii)
            assert whole.status == 200 and whole.getheader('Content-Type') == 'application/json'
            assert json.loads(whole.read()) == {'model_name': 'words', 'model_version': '1', 'text_output': text}
    # Members in any order, unknown ones, of any length; the body in chunks.
    body = json.dumps({'stream': False, 'parameters': {'temperature': 0.5, 'stop': ['a'] * 1000}, 'text_input': MANY})
    pieces = (body[at:at + 777].encode() for at in range(0, len(body), 777))
    kept.request('POST', PATH + 'generate', pieces)
    assert json.loads(kept.getresponse().read())['text_output'] == MANY
    # HTTP/1.0: the end of the connection is that of the events.
    with socket.create_connection((HOST, 8501), timeout=20) as sock:
        sock.sendall(b'POST %sgenerate_stream HTTP/1.0\r\nContent-Length: 22\r\n\r\n{"text_input":"a b c"}' % PATH.encode())
        head, body = sock.makefile('rb').read().split(b'\r\n\r\n', 1)
    assert b'Transfer-Encoding' not in head, head
    assert ''.join(json.loads(line[6:])['text_output'] for line in body.split(b'\n') if line) == 'a b c', body
    # Requests that do not wait for each other's answers get them in order.
    ask = b'POST %s%s HTTP/1.1\r\nHost: h\r\nContent-Length: 22\r\n\r\n{"text_input":"a b c"}'
    with socket.create_connection((HOST, 8501), timeout=20) as sock:
        sock.sendall(b''.join(ask % (PATH.encode(), end) for end in (b'generate_stream', b'generate', b'generate_stream')))
        sock.shutdown(socket.SHUT_WR)
        body = sock.makefile('rb').read()
    assert body.count(b'data: ') == 6 and body.count(b'"a b c"') == 1 and body.count(b'\r\n0\r\n\r\n') == 2, body
    assert body.index(b'"a b c"') > body.index(b'\r\n0\r\n\r\n'), body


def step_errors():
    kept = http.client.HTTPConnection(HOST, 8501, timeout=20)
    for endpoint in ('generate', 'generate_stream'):
        for text, status, error in (('x' * 262145, 413, 'text_input'), (5, 400, 'expected a string'), (None, 400, 'expected a string')):
            expect_refused(post(endpoint, text, connection=kept), status, error)
        kept.request('POST', PATH + endpoint, '{"text":"a"}')
        expect_refused(kept.getresponse(), 400, 'no text_input')
        kept.request('POST', PATH + endpoint, '{"text_input":"a","text_input":"b"}')
        expect_refused(kept.getresponse(), 400, 'twice')
        kept.request('POST', PATH + endpoint, '{"text_input":"a"')
        expect_refused(kept.getresponse(), 400, '')
        kept.request('GET', PATH + endpoint)
        expect_refused(kept.getresponse(), 405, 'POST')
        other = http.client.HTTPConnection(HOST, 8502, timeout=20)
        other.request('POST', '/v2/models/echo/' + endpoint, '{"text_input":"a"}')
        expect_refused(other.getresponse(), 503, 'no workers')
    # One answer cannot be several.
    kept.request('POST', PATH + 'infer', json.dumps({'inputs': [
        {'name': 'text_input', 'shape': [1], 'datatype': 'BYTES', 'data': ['a b c']}]}))
    expect_refused(kept.getresponse(), 501, 'come in pieces')
    # A reply of one piece is one.
    kept.request('POST', PATH + 'infer', json.dumps({'inputs': [
        {'name': 'text_input', 'shape': [1], 'datatype': 'BYTES', 'data': ['abc']}]}))
    assert json.loads(kept.getresponse().read())['outputs'][0]['data'] == ['abc']


def asked(text, number=0, final=False):
    request = pb.ModelInferRequest(model_name='words', id=str(number))
    request.inputs.add(name='text_input', datatype='BYTES', shape=[1])
    data = text.encode()
    request.raw_input_contents.append(struct.pack('<I', len(data)) + data)
    if final:
        request.parameters['triton_enable_empty_final_response'].bool_param = True
    return request


def calls(to):
    return to.stream_stream('/inference.GRPCInferenceService/ModelStreamInfer',
                            request_serializer=lambda m: m.SerializeToString(),
                            response_deserializer=pb.ModelStreamInferResponse.FromString)


def text_of(answer):
    raw = answer.infer_response.raw_output_contents[0]
    assert struct.unpack('<I', raw[:4])[0] == len(raw) - 4, raw
    return raw[4:].decode()


def step_calls():
    texts = [TEXT, 'one', MANY, '', 'a b'] * 3
    with grpc.insecure_channel(HOST + ':8501') as to:
        for final in (False, True):
            found, ends = {}, []
            for answer in calls(to)(iter([asked(text, n, final) for n, text in enumerate(texts)]), timeout=60):
                assert answer.error_message == '', answer
                said, number = answer.infer_response.parameters, int(answer.infer_response.id)
                assert ('triton_final_response' in said) == final
                if final and said['triton_final_response'].bool_param:
                    assert not answer.infer_response.outputs and not answer.infer_response.raw_output_contents
                    ends.append(number)
                    continue
                assert number not in ends
                found.setdefault(number, []).append(text_of(answer))
            assert [''.join(found[n]) for n in range(len(texts))] == texts
            assert len(found[0]) == 10 and len(found[1]) == 1
            assert sorted(ends) == (list(range(len(texts))) if final else [])
        infer = to.unary_unary('/inference.GRPCInferenceService/ModelInfer', request_serializer=lambda m: m.SerializeToString(),
                               response_deserializer=pb.ModelInferResponse.FromString)
        try:
            infer(asked('a b c'), timeout=20)
            raise AssertionError('one answer for several')
        except grpc.RpcError as error:
            assert error.code() == grpc.StatusCode.UNIMPLEMENTED and 'in pieces' in error.details(), error
        answer = infer(asked('abc'), timeout=20)
        assert answer.raw_output_contents[0] == b'\x03\0\0\0abc'


def step_one_by_one():
    answer = post('generate_stream', TEXT)
    times = [at for at, event in events(answer) if event is not None]
    assert len(times) == 10 and times[-1] - times[0] > 0.4, times
    with grpc.insecure_channel(HOST + ':8501') as to:
        times = [time.monotonic() for _ in calls(to)(iter([asked(TEXT)]), timeout=20)]
    assert len(times) == 10 and times[-1] - times[0] > 0.4, times
    # Several at once take as long as one.
    begin = time.monotonic()
    answers = [post('generate_stream', TEXT) for _ in range(8)]
    assert all(len(told(answer)) == 10 for answer in answers)
    assert time.monotonic() - begin < 3


def step_deadline():
    found = told(post('generate_stream', TEXT, {'timeout': 220000}))
    assert 1 <= len(found) - 1 < 10, found
    expect_error(found[-1], 'deadline')
    with grpc.insecure_channel(HOST + ':8501') as to:
        request = asked(TEXT)
        request.parameters['timeout'].int64_param = 220000
        found = list(calls(to)(iter([request]), timeout=20))
        assert 1 <= len(found) - 1 < 10 and 'deadline' in found[-1].error_message, found
        found = []
        try:
            for answer in calls(to)(iter([asked(TEXT)]), timeout=0.22):
                found.append(answer)
        except grpc.RpcError as error:
            assert error.code() == grpc.StatusCode.DEADLINE_EXCEEDED, error
        assert 1 <= len(found) < 10, found


def step_leaves():
    """In the middle of a stream: a connection that is reset, a call that is cancelled."""
    text = 'word ' * 400
    answer = post('generate_stream', text)
    assert answer.readline().startswith(b'data: ')
    answer.fp.raw._sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack('ii', 1, 0))
    answer.close()
    with grpc.insecure_channel(HOST + ':8501') as to:
        call = calls(to)(iter([asked(text)]), timeout=20)
        assert text_of(next(iter(call))) == 'word'
        call.cancel()


def step_silence():
    answer = post('generate_stream', 'a b c')
    found = list(events(answer))
    assert ''.join(event['text_output'] for _, event in found if event) == 'a b c'
    between = [event is None for _, event in found]
    assert between.count(True) >= 4 and not between[-1], found


def step_fails():
    found = told(post('generate_stream', TEXT))
    assert [event.get('text_output') for event in found[:2]] == ['to', ' be,'], found
    assert len(found) == 3
    expect_error(found[2], 'failed')
    expect_refused(post('generate', TEXT), 500, 'failed')
    with grpc.insecure_channel(HOST + ':8501') as to:
        found = list(calls(to)(iter([asked(TEXT)]), timeout=20))
        assert [text_of(answer) for answer in found[:2]] == ['to', ' be,'] and 'failed' in found[2].error_message, found


def step_fails_at_once():
    for endpoint in ('generate', 'generate_stream'):
        expect_refused(post(endpoint, TEXT), 500, 'failed')


def step_too_many_pieces():
    found = told(post('generate_stream', TEXT))
    assert len(found) == 3, found
    expect_error(found[-1], 'failed')
    assert len(told(post('generate_stream', 'a b c'))) == 3


def step_worker_lost():
    answer = post('generate_stream', 'word ' * 400)
    found = []
    for _, event in events(answer):
        if len(found) == 2:
            os.kill(int(os.environ['WORKER']), signal.SIGKILL)
        found.append(event)
    expect_error(found[-1], 'lost')


def step_balancer_lost():
    """The load balancer is killed in the middle of streams: they break, without an end. Nothing comes any more, which
    each client finds out by its own limit."""
    connections = [http.client.HTTPConnection(HOST, 8501, timeout=20) for _ in range(8)]
    for connection in connections:
        connection.connect()
    sockets = [connection.sock for connection in connections]
    answers = [post('generate_stream', 'word ' * 400, connection=connection) for connection in connections]
    for answer in answers:
        assert answer.readline().startswith(b'data: ')
    os.kill(int(os.environ['BALANCER']), signal.SIGKILL)
    for sock, answer in zip(sockets, answers):
        sock.settimeout(1)
        try:
            rest = answer.read()
            raise AssertionError(rest)
        except (OSError, http.client.HTTPException):
            pass


globals()['step_' + sys.argv[3]]()
