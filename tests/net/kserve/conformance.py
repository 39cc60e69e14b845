#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Asks a load balancer the rows of rows.py, by HTTP from a socket and by gRPC with Google's library.

    conformance.py MESSAGES HOST PORT STEP

MESSAGES: the folder with inference_pb2.py. STEP: empty (no workers), all, or late (the worker of `echo` is halted). Prints each
row whose answer is another one, and ends with 1 if there was one.
"""
import glob
import http.client
import json
import os
import signal
import socket
import struct
import subprocess
import sys
import time

sys.path[:0] = [sys.argv[1], os.path.dirname(os.path.abspath(__file__))]
import grpc
import inference_pb2 as pb
import rows

HOST, PORT = sys.argv[2], int(sys.argv[3])
asked, problems = 0, []


def check(row, holds, got):
    global asked
    asked += 1
    if not holds:
        problems.append('%s: %s' % (row, str(got)[:300]))


# --- HTTP ---------------------------------------------------------------------------------------------------------------

def ask(request, then=None):
    """(status, fields, JSON or None, the bytes behind it) of the answer to these bytes. `then` is called when they are sent."""
    with socket.create_connection((HOST, PORT), 20) as sock:
        sock.sendall(request)
        if then:
            then()
        answer = http.client.HTTPResponse(sock, method=request.split(b' ', 1)[0].decode())
        answer.begin()
        body = answer.read()
    end = int(answer.headers.get('Inference-Header-Content-Length', len(body)))
    try:
        read = json.loads(body[:end])
    except ValueError:
        read = None
    return answer.status, answer.headers, read, body[end:]


def holds(condition, a, behind):
    try:
        return bool(eval(condition, {'a': a, 'behind': behind, 'words': rows.WORDS, 'elements': rows.elements(rows.WORDS)}))
    except (KeyError, IndexError, TypeError):
        return False


def ask_endpoints():
    for path, statuses in rows.ENDPOINTS:
        for method, status in zip(rows.METHODS, statuses):
            got, fields, a, _ = ask(rows.http(method, path))
            check('%s %s: %d' % (method, path, status), got == status, (got, a))
            if method == 'HEAD':
                check('HEAD %s: no body' % path, a is None and int(fields['Content-Length']) > 0, a)
            elif status != 200:
                check('%s %s: an error' % (method, path), list(a) == ['error'] and a['error'], a)
            elif path in rows.DOCUMENTS:
                check('%s %s: %s' % (method, path, rows.DOCUMENTS[path]), holds(rows.DOCUMENTS[path], a, b''), a)


def ask_errors(which, then=None):
    for what, request, status, fields, words in which:
        got, head, a, _ = ask(request, then)
        check('%s: %d' % (what, status), got == status, (got, a))
        for name, value in fields.items():
            check('%s: %s: %s' % (what, name, value), head.get(name) == value, head)
        check('%s: %r' % (what, words), a is not None and words in a.get('error', ''), a)


def ask_parameters():
    for place, name, _, request, status, condition, wish, code in rows.PARAMETERS:
        got, _, a, behind = ask(request)
        check('%s: %s: %d' % (place, name, status), got == status, (got, a))
        check('%s: %s: %s' % (place, name, condition), holds(condition, a, behind), (a, behind))
        check_grpc('%s: %s' % (place, name), {'outputs': ['int8'], 'parameter': (wish[0], name.split(':')[0], wish[1])}, code, '')


def ask_datatypes():
    for datatype, in_json, _, exact, typed in rows.DATATYPES:
        data, name = rows.packed(datatype, exact), datatype.lower()
        if in_json is not None:
            got, _, a, _ = ask(rows.infer(json_of=[datatype], outputs=[name]))
            check('%s in JSON, to JSON' % datatype, got == 200 and same(datatype, a['outputs'][0], in_json), (got, a))
            got, _, a, behind = ask(rows.infer(json_of=[datatype], outputs=[name], output_parameters={'binary_data': True}))
            check('%s in JSON, to binary' % datatype, got == 200 and behind == data, (got, a, behind))
            got, _, a, _ = ask(rows.infer(outputs=[name], **{datatype: data}))
            check('%s in binary, to JSON' % datatype, got == 200 and same(datatype, a['outputs'][0], in_json), (got, a))
        else:
            got, _, a, _ = ask(rows.infer(outputs=[name], **{datatype: data}))
            check('%s in binary, to JSON' % datatype, got == 400, (got, a))
        got, _, a, behind = ask(rows.infer(outputs=[name], output_parameters={'binary_data': True}, **{datatype: data}))
        check('%s in binary, to binary' % datatype, got == 200 and behind == data and
              a['outputs'][0]['datatype'] == datatype, (got, a, behind))
        check_grpc('%s, raw' % datatype, {'raw': (datatype, data), 'outputs': [name]}, 0, '', data)
        if typed:
            check_grpc('%s, typed' % datatype, {'typed': [datatype], 'outputs': [name]}, 0, '', data)


def ask_batches():
    data = rows.elements(rows.WORDS)
    for came, goes, request, condition in rows.BATCHES:
        got, _, a, behind = ask(request)
        check('rows of BYTES in %s, to %s' % (came, goes), got == 200 and holds(condition, a, behind), (got, a, behind))
    for typed in (False, True):
        got, said = call(rows.SERVICE, 'ModelInfer', words_message(None if typed else data))
        check('gRPC: rows of BYTES, typed: %s' % typed, got == 0 and
              list(pb.ModelInferResponse.FromString(said).raw_output_contents) == [data], (got, said))


def same(datatype, output, values):
    """FP32 is written with the digits that give its bits again."""
    if datatype == 'FP32':
        return struct.pack('<2f', *output['data']) == struct.pack('<2f', *values)
    return output['data'] == values


# --- gRPC ---------------------------------------------------------------------------------------------------------------

channel = grpc.insecure_channel('%s:%d' % (HOST, PORT))


def identity(message):
    return message


def method(service, name):
    return channel.unary_unary('/%s/%s' % (service, name), request_serializer=identity, response_deserializer=identity)


def set_parameter(to, name, value):
    kind = 'bool_param' if isinstance(value, bool) else 'int64_param' if isinstance(value, int) else 'string_param'
    setattr(to.parameters[name], kind, value)


def infer_message(wishes):
    typed = wishes.get('typed', [])
    request = pb.ModelInferRequest(model_name=wishes.get('model', 'types'), model_version=wishes.get('version', ''))
    for datatype, _, _, exact, field in rows.DATATYPES:
        name = datatype.lower()
        if wishes.get('leave_out') == name:
            continue
        one = request.inputs.add(name=name, datatype=datatype, shape=[2])
        if typed:
            if datatype not in typed and field:
                getattr(one.contents, field).extend((b'', b'') if datatype == 'BYTES' else (0, 0))
            elif field:
                getattr(one.contents, field).extend(exact)
        if not typed:
            which, data = wishes.get('raw', ('', b''))
            request.raw_input_contents.append(data if which == datatype else rows.zeros(datatype))
        for key, attribute in (('rename', 'name'), ('retype', 'datatype')):
            if wishes.get(key, ('',))[0] == name:
                setattr(one, attribute, wishes[key][1])
        if wishes.get('reshape', ('',))[0] == name:
            one.shape[:] = wishes['reshape'][1]
        if wishes.get('parameter', ('', ''))[0] == 'input' and name == 'int8':
            set_parameter(one, *wishes['parameter'][1:])
    if wishes.get('and_raw'):
        request.raw_input_contents.append(b'x')
    for name in wishes.get('outputs', []):
        output = request.outputs.add(name=name)
        if wishes.get('parameter', ('', ''))[0] == 'output':
            set_parameter(output, *wishes['parameter'][1:])
    if wishes.get('parameter', ('', ''))[0] == 'request':
        set_parameter(request, *wishes['parameter'][1:])
    return request.SerializeToString()


def echo_message(wishes):
    request = pb.ModelInferRequest(model_name='echo')
    request.inputs.add(name='input0', datatype='UINT8', shape=[wishes.get('bytes_of', 3)])
    request.raw_input_contents.append(bytes(wishes.get('bytes_of', 3)))
    if 'timeout' in wishes:
        request.parameters['timeout'].int64_param = wishes['timeout']
    return request.SerializeToString()


def words_message(raw):
    request = pb.ModelInferRequest(model_name='words')
    one = request.inputs.add(name='text', datatype='BYTES', shape=[len(rows.WORDS), 1])
    if raw is None:
        one.contents.bytes_contents.extend(word.encode() for word in rows.WORDS)
    else:
        request.raw_input_contents.append(raw)
    return request.SerializeToString()


def call(service, name, message, compression=None, then=None):
    """(status, message of it or the answer's bytes). `then` is called meanwhile."""
    future = method(service, name).future(message, timeout=20, compression=compression)
    if then:
        then()
    try:
        return 0, future.result()
    except grpc.RpcError as error:
        return error.code().value[0], error.details()


def call_with(messages):
    """The same of ModelInfer with so many messages, or none."""
    try:
        method = channel.stream_unary('/%s/ModelInfer' % rows.SERVICE)
        return 0, method(iter([echo_message({})] * messages), timeout=20)
    except grpc.RpcError as error:
        return error.code().value[0], error.details()


def watch():
    """(status, the first message) of a call of Watch, which then is given up."""
    call = channel.unary_stream('/grpc.health.v1.Health/Watch')(b'', timeout=20)
    try:
        said = next(call)
    except grpc.RpcError as error:
        return error.code().value[0], error.details()
    call.cancel()
    return 0, said


def check_grpc(row, wishes, status, words, data=None):
    if 'typed' in wishes and not wishes.get('and_raw'):
        return check_typed(row, wishes, data)
    message = wishes.get('bytes', infer_message(wishes))
    if 'rows' in wishes:
        message = words_message(wishes['rows'])
    if 'bytes_of' in wishes:
        message = echo_message(wishes)
    if 'messages' in wishes:
        got, said = call_with(wishes['messages'])
        return check('gRPC: %s: %s' % (row, rows.STATUSES[status]), got == status and words in said, (got, said))
    if 'grpc_timeout' in wishes:
        return check_timeout(row, wishes['grpc_timeout'], status, words)
    got, said = call(rows.SERVICE, 'ModelInfer', message, grpc.Compression.Gzip if wishes.get('gzip') else None)
    check('gRPC: %s: %s' % (row, rows.STATUSES[status]), got == status and (got == 0 or words in said), (got, said))
    if got == 0 and data is not None:
        answer = pb.ModelInferResponse.FromString(said)
        check('gRPC: %s: its bytes' % row, list(answer.raw_output_contents) == [data], answer)


def check_typed(row, wishes, data):
    """FP16 and BF16 have no typed contents, and kinds do not mix: these are asked of a model with one input."""
    datatype = wishes['typed'][0]
    field = next(r[4] for r in rows.DATATYPES if r[0] == datatype)
    exact = next(r[3] for r in rows.DATATYPES if r[0] == datatype)
    request = pb.ModelInferRequest(model_name='typed')
    for each, _, _, _, other in rows.DATATYPES[2:]:
        one = request.inputs.add(name=each.lower(), datatype=each, shape=[2])
        getattr(one.contents, other).extend(exact if each == datatype else (b'', b'') if each == 'BYTES' else (0, 0))
    request.outputs.add(name=datatype.lower())
    got, said = call(rows.SERVICE, 'ModelInfer', request.SerializeToString())
    check('gRPC: %s' % row, got == 0, (got, said))
    if got == 0:
        check('gRPC: %s: its bytes' % row, list(pb.ModelInferResponse.FromString(said).raw_output_contents) == [data], said)


def check_timeout(row, value, status, words):
    """A field that the library would not send: curl's HTTP/2 does."""
    said = subprocess.run(['curl', '--silent', '--max-time', '20', '--http2-prior-knowledge', '--dump-header', '-', '--data', '',
                           '-H', 'content-type: application/grpc', '-H', 'te: trailers', '-H', 'grpc-timeout: ' + value,
                           'http://%s:%d/%s/ServerLive' % (HOST, PORT, rows.SERVICE)], stdout=subprocess.PIPE, check=True,
                          text=True).stdout.lower()
    check('gRPC: %s' % row, 'grpc-status: %d\n' % status in said.replace('\r', '') and words in said, said)


def ask_calls():
    index = pb.RepositoryIndexRequest(ready=True).SerializeToString()
    named = pb.ModelReadyRequest(name='types').SerializeToString()
    messages = {'ModelReady': named, 'ModelMetadata': named, 'ModelConfig': named, 'ModelInfer': infer_message({}),
                'ModelStreamInfer': infer_message({}), 'RepositoryIndex': index}
    answers = {}
    for service, name, status in rows.CALLS:
        got, said = watch() if name == 'Watch' else call(service, name, messages.get(name, b''))
        check('gRPC: %s/%s: %s' % (service, name, rows.STATUSES[status]), got == status, (got, said))
        answers[name] = said
    check_answers(answers)


def check_answers(answers):
    check('gRPC: ServerLive', pb.ServerLiveResponse.FromString(answers['ServerLive']).live, answers['ServerLive'])
    check('gRPC: ServerReady', pb.ServerReadyResponse.FromString(answers['ServerReady']).ready, answers['ServerReady'])
    check('gRPC: ModelReady', pb.ModelReadyResponse.FromString(answers['ModelReady']).ready, answers['ModelReady'])
    check('gRPC: Check', pb.HealthCheckResponse.FromString(answers['Check']).status == 1, answers['Check'])
    check('gRPC: Watch', pb.HealthCheckResponse.FromString(answers['Watch']).status == 1, answers['Watch'])
    described = pb.ModelMetadataResponse.FromString(answers['ModelMetadata'])
    check('gRPC: ModelMetadata', described.platform == 'test' and [t.datatype for t in described.outputs] ==
          [row[0] for row in rows.DATATYPES], described)
    counted = pb.ModelStatisticsResponse.FromString(answers['ModelStatistics'])
    check('gRPC: ModelStatistics', sorted(m.name for m in counted.model_stats) == ['echo', 'mlp', 'typed', 'types', 'words'], counted)
    one = call(rows.SERVICE, 'ModelStatistics', pb.ModelStatisticsRequest(name='types', version='1').SerializeToString())[1]
    stats = pb.ModelStatisticsResponse.FromString(one).model_stats
    check('gRPC: ModelStatistics of a model', [m.name for m in stats] == ['types'] and stats[0].version == '1' and
          stats[0].inference_count == stats[0].inference_stats.success.count > 0 and
          stats[0].inference_stats.success.ns > stats[0].inference_stats.compute_infer.ns > 0 and
          stats[0].last_inference > 1700000000000, stats)
    status = call(rows.SERVICE, 'ModelStatistics', pb.ModelStatisticsRequest(name='absent').SerializeToString())[0]
    check('gRPC: ModelStatistics of a model that is not there', status == 5, status)
    listed = pb.RepositoryIndexResponse.FromString(answers['RepositoryIndex'])
    check('gRPC: RepositoryIndex', sorted((m.name, m.version, m.state, m.reason) for m in listed.models) ==
          [(name, '1', 'READY', '') for name in ('echo', 'mlp', 'typed', 'types', 'words')], listed)
    answer = pb.ModelStreamInferResponse.FromString(answers['ModelStreamInfer'])
    check('gRPC: ModelStreamInfer', answer.infer_response.model_name == 'types' and not answer.error_message, answer)


def check_late_grpc(row, then=None):
    what, wishes, status, words = row
    got, said = call(rows.SERVICE, 'ModelInfer', echo_message(wishes), then=then)
    check('gRPC: %s: %s' % (what, rows.STATUSES[status]), got == status and words in said, (got, said))


# --- steps --------------------------------------------------------------------------------------------------------------

def step_empty():
    ask_errors(rows.LATE_ERRORS[:1])
    check_late_grpc(rows.LATE_GRPC_ERRORS[0])
    listed = call(rows.SERVICE, 'RepositoryIndex', b'')[1]
    models = pb.RepositoryIndexResponse.FromString(listed).models
    check('gRPC: RepositoryIndex without workers', {m.state for m in models} == {'UNAVAILABLE'} and len(models) == 5, models)
    ready = pb.RepositoryIndexRequest(ready=True).SerializeToString()
    check('gRPC: RepositoryIndex of what is ready', call(rows.SERVICE, 'RepositoryIndex', ready) == (0, b''), ready)


def step_all():
    ask_endpoints()
    ask_errors(rows.ERRORS)
    ask_datatypes()
    ask_batches()
    ask_parameters()
    ask_calls()
    for what, wishes, status, words in rows.GRPC_ERRORS:
        check_grpc(what, wishes, status, words)


def go_on():
    """The worker goes on when the deadline has passed, from when the request has come: later ones are answered then."""
    ask(rows.http('GET', '/v2/health/live'))
    call(rows.SERVICE, 'ServerLive', b'')
    time.sleep(0.15)
    os.kill(int(os.environ['WORKER']), signal.SIGCONT)


def halt():
    """Returns when all threads of the worker have stopped."""
    worker = os.environ['WORKER']
    os.kill(int(worker), signal.SIGSTOP)
    threads = glob.glob('/proc/%s/task/*/stat' % worker)
    while any(open(thread).read().rpartition(') ')[2][0] not in 'Tt' for thread in threads):
        os.sched_yield()


def step_late():
    check_late_grpc(rows.LATE_GRPC_ERRORS[1], lambda: ask_errors(rows.LATE_ERRORS[1:2]))
    ask_errors(rows.LATE_ERRORS[2:], go_on)
    halt()
    check_late_grpc(rows.LATE_GRPC_ERRORS[2], go_on)
    halt()
    check_grpc(*rows.LATE_GRPC_ERRORS[3])


globals()['step_' + sys.argv[4]]()
print('\n'.join(problems) or '%d answers as the rows say' % asked)
sys.exit(1 if problems else 0)
