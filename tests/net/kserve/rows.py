#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""What of KServe's protocol v2 is answered how: the rows that conformance.py asks a load balancer, and the page that is made
of them.

    rows.py --page PAGE    writes the page
    rows.py --check PAGE   fails if the page is not that of the rows
"""
import json
import struct
import sys

MODEL = 'types'  # has an input and an output of each datatype, two elements each: tests/net/kserve/types.c

# --- datatypes: name, two values, their bytes, the field of gRPC's typed contents -----------------------------------

DATATYPES = [
    ('FP16', None, '<2e', (1.5, -65504.0), None),
    ('BF16', None, '<2H', (0x3fc0, 0xff7f), None),
    ('BOOL', [True, False], '<2?', (True, False), 'bool_contents'),
    ('UINT8', [0, 255], '<2B', (0, 255), 'uint_contents'),
    ('UINT16', [1, 65535], '<2H', (1, 65535), 'uint_contents'),
    ('UINT32', [1, 4294967295], '<2I', (1, 4294967295), 'uint_contents'),
    ('UINT64', [1, 18446744073709551615], '<2Q', (1, 18446744073709551615), 'uint64_contents'),
    ('INT8', [-128, 127], '<2b', (-128, 127), 'int_contents'),
    ('INT16', [-32768, 32767], '<2h', (-32768, 32767), 'int_contents'),
    ('INT32', [-2147483648, 2147483647], '<2i', (-2147483648, 2147483647), 'int_contents'),
    ('INT64', [-9223372036854775808, 9223372036854775807], '<2q', (-9223372036854775808, 9223372036854775807),
     'int64_contents'),
    ('FP32', [0.1, -3.4e38], '<2f', (0.1, -3.4e38), 'fp32_contents'),
    ('FP64', [0.1, 1.7976931348623157e308], '<2d', (0.1, 1.7976931348623157e308), 'fp64_contents'),
    ('BYTES', ['', 'gr\u00fc\u00df "x"'], None, (b'', 'gr\u00fc\u00df "x"'.encode()), 'bytes_contents'),
]


def packed(datatype, values):
    layout = next(row[2] for row in DATATYPES if row[0] == datatype)
    if layout is None:
        return b''.join(struct.pack('<I', len(value)) + value for value in values)
    return struct.pack(layout, *values)


def zeros(datatype):
    return packed(datatype, (b'', b'') if datatype == 'BYTES' else (0, 0))


# --- HTTP: requests ---------------------------------------------------------------------------------------------------

def http(method, path, body=b'', fields=(), line=None, length=True):
    """The bytes of a request."""
    head = [line or '%s %s HTTP/1.1' % (method, path), 'Host: doorbell']
    if length and (body or method == 'POST'):
        head.append('Content-Length: %d' % len(body))
    return '\r\n'.join(head + list(fields) + ['', '']).encode() + body


def tensors(outputs=None, parameters=None, json_of=(), change=None, output_parameters=None, leave_out=None, **of):
    """An infer request for all inputs: in binary, but for those of `json_of`. (JSON, the bytes behind it)"""
    inputs, behind = [], b''
    for datatype, values, _, exact, _ in DATATYPES:
        if datatype == leave_out:
            continue
        one = {'name': datatype.lower(), 'shape': [2], 'datatype': datatype}
        if datatype in json_of:
            one['data'] = values
        else:
            data = of.get(datatype, zeros(datatype))
            one['parameters'] = {'binary_data_size': len(data)}
            behind += data
        if change and datatype in change:
            one.update(change[datatype])
        inputs.append(one)
    asked = {'inputs': inputs}
    if parameters:
        asked = {'parameters': parameters, 'inputs': inputs}
    if outputs:
        asked['outputs'] = [dict({'name': name}, **({'parameters': output_parameters} if output_parameters else {}))
                            for name in outputs]
    return json.dumps(asked).encode(), behind


def infer(fields=(), path='/v2/models/types/infer', **wishes):
    text, behind = tensors(**wishes)
    return http('POST', path, text + behind, ['Inference-Header-Content-Length: %d' % len(text), *fields])


def echo(body=b'abc', fields=(), **wishes):
    return http('POST', '/v2/models/echo/infer', body, ['Inference-Header-Content-Length: 0', *fields], **wishes)


def values(text, fields=(), path='/v2/models/echo/infer'):
    return http('POST', path, text if isinstance(text, bytes) else json.dumps(text).encode(), fields)


WORDS = ['', 'gr\u00fc\u00df "x"', 'a' * 300]


def elements(words):
    return b''.join(struct.pack('<I', len(word)) + word for word in (word.encode() for word in words))


def words(rows=len(WORDS), behind=None, data=None, binary_reply=False):
    """A batch of rows for the model `words`: elements of `data` in JSON, or these bytes behind it."""
    one = {'name': 'text', 'shape': [rows, 1], 'datatype': 'BYTES'}
    if behind is None:
        one['data'] = WORDS if data is None else data
    else:
        one['parameters'] = {'binary_data_size': len(behind)}
    text = json.dumps({'inputs': [one], 'outputs': [{'name': 'said', 'parameters': {'binary_data': binary_reply}}]}).encode()
    return http('POST', '/v2/models/words/infer', text + (behind or b''), ['Inference-Header-Content-Length: %d' % len(text)])


ONE = {'name': 'input0', 'shape': [3], 'datatype': 'UINT8', 'data': [1, 2, 3]}
INT8 = {'outputs': ['int8']}
METHODS = ('GET', 'HEAD', 'POST', 'PUT')

# Each endpoint, and the status of GET, HEAD, POST and PUT, which stands for all others.
ENDPOINTS = [
    ('/v2', (200, 200, 405, 405)),
    ('/v2/health/live', (200, 200, 405, 405)),
    ('/v2/health/ready', (200, 200, 405, 405)),
    ('/v2/models/types', (200, 200, 405, 405)),
    ('/v2/models/types/ready', (200, 200, 405, 405)),
    ('/v2/models/types/config', (200, 200, 405, 405)),
    ('/v2/models/types/stats', (200, 200, 405, 405)),
    ('/v2/models/stats', (200, 200, 405, 405)),
    ('/v2/models/types/infer', (405, 405, 400, 405)),
    ('/v2/models/types/versions/1', (200, 200, 405, 405)),
    ('/v2/models/types/versions/1/ready', (200, 200, 405, 405)),
    ('/v2/models/types/versions/1/infer', (405, 405, 400, 405)),
    ('/v2/repository/index', (405, 405, 200, 405)),
    ('/v2/models/types/generate', (405, 405, 400, 405)),
    ('/v2/models/types/generate_stream', (405, 405, 400, 405)),
    ('/v2/models/types/trace/setting', (501, 501, 501, 405)),
    ('/v2/trace/setting', (501, 501, 501, 405)),
    ('/v2/logging', (501, 501, 501, 405)),
    ('/v2/repository/models/types/load', (501, 501, 501, 405)),
    ('/v2/repository/models/types/unload', (501, 501, 501, 405)),
    ('/v2/systemsharedmemory/status', (501, 501, 501, 405)),
    ('/v2/cudasharedmemory/status', (501, 501, 501, 405)),
    ('/v2/models/absent', (404, 404, 405, 405)),
    ('/v2/models/types/versions/9/ready', (404, 404, 405, 405)),
    ('/v1/models', (404, 404, 404, 405)),
]

# What GET answers, or POST where that is it: a Python expression about `a`, its JSON.
DOCUMENTS = {
    '/v2': "a['name'] == 'doorbell' and a['version'] and a['extensions'] == ['binary_tensor_data', 'model_configuration', "
           "'parameters', 'schedule_policy', 'statistics']",
    '/v2/health/live': "a == {'live': True}",
    '/v2/health/ready': "a == {'ready': True}",
    '/v2/models/types': "a['name'] == 'types' and a['versions'] == ['1'] and a['platform'] == 'test' and "
                        "a['inputs'][2] == {'name': 'bool', 'datatype': 'BOOL', 'shape': [2]} and len(a['outputs']) == 14",
    '/v2/models/types/ready': "a == {'name': 'types', 'ready': True}",
    '/v2/models/types/config': "a['name'] == 'types' and a['max_batch_size'] == 0 and "
                               "a['input'][13] == {'name': 'bytes', 'data_type': 'TYPE_STRING', 'dims': [2]}",
    '/v2/models/types/stats': "[m['name'] for m in a['model_stats']] == ['types']",
    '/v2/models/stats': "sorted(m['name'] for m in a['model_stats']) == ['echo', 'mlp', 'typed', 'types', 'words']",
    '/v2/repository/index': "sorted(m['name'] for m in a) == ['echo', 'mlp', 'typed', 'types', 'words'] and "
                            "all(m['state'] == 'READY' for m in a)",
}

# --- HTTP: errors. What is asked, its bytes, the status, fields of the answer, words of its error ------------------------

ERRORS = [
    ('JSON that is none', values(b'{"inputs":[}'), 400, {}, ''),
    ('an input that the model does not have', values({'inputs': [dict(ONE, name='x')]}), 400, {}, 'no such input'),
    ('an input twice', values({'inputs': [ONE, ONE]}), 400, {}, 'same name'),
    ('an input is missing', infer(leave_out='INT8'), 400, {}, "'int8' of the model 'types' is missing"),
    ('another datatype', infer(change={'INT8': {'datatype': 'UINT8'}}), 400, {}, 'takes INT8'),
    ('another shape', infer(change={'INT8': {'shape': [1, 2]}}), 400, {}, 'shape [2]'),
    ('more elements than the shape says', values({'inputs': [dict(ONE, data=[1, 2, 3, 4])]}), 400, {}, 'more elements'),
    ('a number out of range', values({'inputs': [dict(ONE, data=[1, 2, 256])]}), 400, {}, 'out of range of UINT8'),
    ('a floating-point number for an integer', values({'inputs': [dict(ONE, data=[1, 2, 3.5])]}), 400, {}, 'no UINT8'),
    ('`binary_data_size` that the shape does not say', infer(INT8=b'x'), 400, {}, 'binary_data_size is 1'),
    ('more bytes than the inputs have', http('POST', '/v2/models/types/infer', b''.join(tensors()) + b'x', [
        'Inference-Header-Content-Length: %d' % len(tensors()[0])]), 400, {}, 'bytes follow the JSON'),
    ('an output that the model does not have', infer(outputs=['x']), 400, {}, 'no such output'),
    ('FP16 or BF16 in JSON', infer(change={'FP16': {'parameters': None, 'data': [1, 2]}}), 400, {}, 'no JSON form'),
    ('outputs of FP16 or BF16 in JSON', infer(outputs=['bf16'], output_parameters={'binary_data': False}), 400, {},
     'no JSON form'),
    ('a raw body for a model with several inputs', http('POST', '/v2/models/types/infer', bytes(102), [
        'Inference-Header-Content-Length: 0']), 400, {}, 'one input'),
    ('a batch of more rows than the model takes', values({'inputs': [
        {'name': 'id', 'shape': [33, 1], 'datatype': 'UINT64', 'data': [1] * 33}]}, path='/v2/models/mlp/infer'), 400, {},
     '33 rows, the model takes 1 to 32'),
    ('rows of BYTES, of which an element ends behind the tensor', words(behind=elements(WORDS)[:-1]), 400, {},
     'an element of row 2 ends behind the tensor'),
    ('rows of BYTES, with bytes behind the last element', words(behind=elements(WORDS) + b'x'), 400, {},
     'bytes follow its last element'),
    ('one row of BYTES, of which an element ends behind the tensor', words(rows=1, behind=elements(['abc'])[:-1]), 400, {},
     'an element ends behind the tensor'),
    ('BYTES of a model without batches, of which an element ends behind the tensor', infer(BYTES=elements(['a', 'b'])[:-1],
     **INT8), 400, {}, 'an element ends behind the tensor'),
    ('BYTES with fewer elements than the shape says', infer(BYTES=elements(['a' * 20]), **INT8), 400, {},
     'an element ends behind the tensor'),
    ('BYTES without bytes, though the shape has elements', infer(BYTES=b'', **INT8), 400, {}, 'shape and datatype say 8'),
    ('BYTES with an element of 4 GiB', infer(BYTES=b'\0' * 4 + b'\xff' * 4 + b'x' * 9, **INT8), 400, {},
     'an element ends behind the tensor'),
    ('BYTES with bytes behind the last element', infer(BYTES=elements(['a', 'b']) + b'x', **INT8), 400, {},
     'bytes follow its last element'),
    ('a batch without a row', words(rows=0, data=[]), 400, {}, '0 rows, the model takes 1 to 32'),
    ('both Content-Length and Transfer-Encoding', echo(fields=['Transfer-Encoding: chunked']), 400, {}, ''),
    ('a space in front of a colon', echo(fields=['X : y']), 400, {}, ''),
    ('a model that is not there', values({'inputs': [ONE]}, path='/v2/models/absent/infer'), 404, {}, "no model 'absent'"),
    ('a version that is not there', values({'inputs': [ONE]}, path='/v2/models/echo/versions/7/infer'), 404, {}, 'version 7'),
    ('a path that is none', http('GET', '/'), 404, {}, 'no such endpoint'),
    ('another method than the endpoint takes', http('GET', '/v2/models/echo/infer'), 405, {'Allow': 'POST'}, 'takes POST'),
    ('a method that no endpoint takes', http('DELETE', '/v2/models/echo'), 405, {'Allow': 'GET, HEAD, POST'}, ''),
    ('a body without Content-Length or chunks', echo(b'', length=False), 411, {}, 'Content-Length'),
    ('a body larger than the model takes', echo(b'x' * 70000), 413, {}, ''),
    ('a path longer than 512 bytes', http('GET', '/v2/models/' + 'x' * 600), 414, {}, ''),
    ('a body that is compressed', echo(fields=['Content-Encoding: gzip']), 415, {'Accept-Encoding': 'identity'}, ''),
    ('`Expect` of something else than 100-continue', echo(fields=['Expect: x']), 417, {}, ''),
    ('a line of a head longer than 4,096 bytes', echo(fields=['X: ' + 'y' * 5000]), 431, {}, ''),
    ('more than 64 lines in a head', echo(fields=['X: y'] * 70), 431, {}, ''),
    ('the model fails', infer(UINT8=bytes([66, 0]), **INT8), 500, {}, 'the model failed'),
    ('a batch with more than 4,096 bytes of rows with BYTES', words(behind=elements(['x' * 2100] * 3)), 501, {},
     'more than 4096 bytes of rows with BYTES'),
    ('another coding than chunked', echo(b'', fields=['Transfer-Encoding: gzip'], length=False), 501, {}, ''),
    ('a method that HTTP does not have', http('BREW', '/v2'), 501, {}, ''),
    ('another version than 1.0 and 1.1', http('GET', '/v2', line='GET /v2 HTTP/2.0'), 505, {}, ''),
]
# The same without a worker; while it is halted; and if it goes on after 150 ms.
LATE_ERRORS = [
    ('no worker', values({'inputs': [ONE]}), 503, {'Retry-After': '1'}, "the model 'echo' has no workers"),
    ('the worker does not answer in `request_timeout_ms`', values({'inputs': [ONE]}), 504, {}, 'did not answer in time'),
    ('the deadline passes', values({'parameters': {'timeout': 100000}, 'inputs': [ONE]}), 504, {}, 'within the deadline'),
]

# --- batches of BYTES: how they come and go; bytes by HTTP, and what must hold of the answer ------------------------------

IN_ROWS = "a['outputs'][0]['shape'] == [3, 1] and a['outputs'][0]['data'] == words and behind == b''"
BINARY_ROWS = "a['outputs'][0]['shape'] == [3, 1] and behind == elements"
BATCHES = [
    ('JSON', 'JSON', words(), IN_ROWS),
    ('JSON', 'binary', words(binary_reply=True), BINARY_ROWS),
    ('binary', 'JSON', words(behind=elements(WORDS)), IN_ROWS),
    ('binary', 'binary', words(behind=elements(WORDS), binary_reply=True), BINARY_ROWS),
]

# --- parameters: where, which, what it does; its HTTP, and what must hold of the answer; gRPC's parameters, and its status ---

SHM = {'shared_memory_region': 'r', 'shared_memory_byte_size': 2}
SESSION = 'with `affinity: sticky` one worker for all of its requests; else none'
IN_JSON = "a['outputs'][0]['data'] == [0, 0]"
IN_BINARY = "a['outputs'][0]['parameters'] == {'binary_data_size': 2} and behind == b'\\0\\0'"

# (of the request, an input or an output; name and value; meaning; bytes by HTTP; status; condition; (place, value) by gRPC; status)
PARAMETERS = [
    ('request', 'timeout: 1000000', 'the deadline, in us; the shorter one of it and `grpc-timeout`; the service\'s if there is '
     'neither', infer(parameters={'timeout': 1000000}, **INT8), 200, IN_JSON, ('request', 1000000), 0),
    ('request', 'priority: 1', '1 (first) to 4 (last), never earlier than the service\'s; 0: the service\'s',
     infer(parameters={'priority': 1}, **INT8), 200, IN_JSON, ('request', 1), 0),
    ('request', 'priority: 70000', 'beyond 4: as 4', infer(parameters={'priority': 70000}, **INT8), 200, IN_JSON,
     ('request', 70000), 0),
    ('request', 'sequence_id: 7', SESSION, infer(parameters={'sequence_id': 7}, **INT8), 200, IN_JSON, ('request', 7), 0),
    ('request', 'sequence_id: "seven"', SESSION, infer(parameters={'sequence_id': 'seven'}, **INT8), 200, IN_JSON,
     ('request', 'seven'), 0),
    ('request', 'sequence_start: true', 'none', infer(parameters={'sequence_start': True}, **INT8), 200, IN_JSON,
     ('request', True), 0),
    ('request', 'sequence_end: true', 'none', infer(parameters={'sequence_end': True}, **INT8), 200, IN_JSON,
     ('request', True), 0),
    ('request', 'binary_data_output: true', 'outputs in binary', infer(parameters={'binary_data_output': True}, **INT8), 200,
     IN_BINARY, ('request', True), 0),
    ('request', 'binary_data_output: false', 'outputs in JSON', infer(parameters={'binary_data_output': False}, **INT8), 200,
     IN_JSON, ('request', False), 0),
    ('request', 'headers, or any other name', 'none', infer(parameters={'headers': 'x'}, **INT8), 200, IN_JSON,
     ('request', 'x'), 0),
    ('request', 'timeout: "soon"', 'refused', infer(parameters={'timeout': 'soon'}, **INT8), 400,
     "'expected a number' in a['error']", ('request', 'soon'), 3),
    ('request', 'priority: "first"', 'refused', infer(parameters={'priority': 'first'}, **INT8), 400,
     "'expected a number' in a['error']", ('request', 'first'), 3),
    ('request', 'timeout: -1', 'refused', infer(parameters={'timeout': -1}, **INT8), 400,
     "'expected an integer' in a['error']", ('request', -1), 3),
    ('input', 'binary_data_size: 2', 'its bytes follow the JSON', infer(**INT8), 200, IN_JSON, ('input', 2), 0),
    ('input', 'shared_memory_region: "r"', 'not there', infer(change={'INT8': {'parameters': SHM}}, **INT8), 501,
     "'error' in a", ('input', 'r'), 12),
    ('output', 'binary_data: true', 'this output in binary', infer(output_parameters={'binary_data': True}, **INT8), 200,
     IN_BINARY, ('output', True), 0),
    ('output', 'binary_data: false', 'this output in JSON', infer(
        parameters={'binary_data_output': True}, output_parameters={'binary_data': False}, **INT8), 200, IN_JSON,
     ('output', False), 0),
    ('output', 'classification: 3', 'not there', infer(output_parameters={'classification': 3}, **INT8), 501, "'error' in a",
     ('output', 3), 12),
    ('output', 'shared_memory_region: "r"', 'not there', infer(output_parameters=SHM, **INT8), 501, "'error' in a",
     ('output', 'r'), 12),
]

# --- gRPC: methods, and the status of a call ------------------------------------------------------------------------------

SERVICE = 'inference.GRPCInferenceService'
CALLS = [(SERVICE, name, 0) for name in (
    'ServerLive', 'ServerReady', 'ModelReady', 'ServerMetadata', 'ModelMetadata', 'ModelConfig', 'ModelInfer',
    'ModelStreamInfer', 'ModelStatistics', 'RepositoryIndex')]
CALLS += [('grpc.health.v1.Health', name, 0) for name in ('Check', 'Watch')]
CALLS += [(SERVICE, name, 12) for name in (
    'RepositoryModelLoad', 'RepositoryModelUnload', 'SystemSharedMemoryStatus', 'SystemSharedMemoryRegister',
    'SystemSharedMemoryUnregister', 'CudaSharedMemoryStatus', 'CudaSharedMemoryRegister', 'CudaSharedMemoryUnregister',
    'TraceSetting', 'LogSettings')]
CALLS += [('grpc.reflection.v1.ServerReflection', 'ServerReflectionInfo', 12)]

STATUSES = {0: 'OK', 3: 'INVALID_ARGUMENT', 4: 'DEADLINE_EXCEEDED', 5: 'NOT_FOUND', 8: 'RESOURCE_EXHAUSTED', 12: 'UNIMPLEMENTED',
            13: 'INTERNAL', 14: 'UNAVAILABLE'}

# What is asked, how conformance.py makes the message, the status, words of its message.
GRPC_ERRORS = [
    ('an input that the model does not have', {'rename': ('int8', 'x')}, 3, 'no such input'),
    ('an input is missing', {'leave_out': 'int8'}, 3, 'missing'),
    ('another datatype', {'retype': ('int8', 'UINT8')}, 3, 'takes INT8'),
    ('another shape', {'reshape': ('int8', [1, 2])}, 3, 'shape [2]'),
    ('raw contents of another size', {'raw': ('INT8', b'x')}, 3, 'the shape says 2'),
    ('an output that the model does not have', {'outputs': ['x']}, 3, 'no such output'),
    ('both kinds of contents', {'typed': ['INT8'], 'and_raw': True}, 3, 'contents and raw_input_contents'),
    ('a message that is none', {'bytes': b'\xff\xff'}, 3, ''),
    ('`grpc-timeout` that is none', {'grpc_timeout': '100x'}, 3, 'grpc-timeout'),
    ('rows of BYTES, of which an element ends behind the tensor', {'rows': elements(WORDS)[:-1]}, 3,
     'an element of row 2 ends behind the tensor'),
    ('rows of BYTES, with bytes behind the last element', {'rows': elements(WORDS) + b'x'}, 3, 'bytes follow its last element'),
    ('BYTES of a model without batches, of which an element ends behind the tensor', {'raw': ('BYTES', elements(['a', 'b'])[:-1])},
     3, 'an element ends behind the tensor'),
    ('BYTES with fewer elements than the shape says', {'raw': ('BYTES', elements(['a' * 20]))}, 3,
     'an element ends behind the tensor'),
    ('BYTES without bytes, though the shape has elements', {'raw': ('BYTES', b'')}, 3, 'an element ends behind the tensor'),
    ('BYTES with bytes behind the last element', {'raw': ('BYTES', elements(['a', 'b']) + b'x')}, 3,
     'bytes follow its last element'),
    ('a batch with more than 4,096 bytes of rows with BYTES', {'rows': elements(['x' * 2100] * 3)}, 12,
     'more than 4096 bytes of rows with BYTES'),
    ('a model that is not there', {'model': 'absent'}, 5, "no model 'absent'"),
    ('a version that is not there', {'version': '7'}, 5, 'version 7'),
    ('more bytes than the service takes', {'bytes_of': 70000}, 8, ''),
    ('the model fails', {'raw': ('UINT8', bytes([66, 0]))}, 13, 'the model failed'),
    ('a message that is compressed', {'gzip': True}, 12, 'compressed'),
    ('a call without a message', {'messages': 0}, 12, 'no message'),
]
LATE_GRPC_ERRORS = [
    ('no worker', {}, 14, "has no workers"),
    ('the worker does not answer in `request_timeout_ms`', {}, 4, 'did not answer in time'),
    ('the deadline passes', {'timeout': 100000}, 4, 'within the deadline'),
    ('a second message, before the first one is answered', {'messages': 2}, 12, 'takes one message'),
]

# --- the page ---------------------------------------------------------------------------------------------------------------

INTRODUCTION = """# KServe's protocol v2, row by row

Made by `tests/net/kserve/rows.py --page` of the rows that the net test `kserve_conformance` asks a load balancer, so each answer
here is one that it gave. The model `types` has an input and an output of each datatype, `echo` one of bytes, and `words` takes batches
of rows with an element of BYTES. How to ask, and why
some things are as they are: the [client guide](client.md#http-kserve-v2).

What is not there is answered with 501, by gRPC with UNIMPLEMENTED, and is here:

%s
"""


def table(head, rows):
    lines = ['| ' + ' | '.join(head) + ' |', '|' + '---|' * len(head)]
    return '\n'.join(lines + ['| ' + ' | '.join(str(cell) for cell in row) + ' |' for row in rows]) + '\n'


def left_out():
    lines = ['* by HTTP: ' + ', '.join('`%s`' % path for path, statuses in ENDPOINTS if 501 in statuses)]
    lines.append('* by gRPC: ' + ', '.join('`%s`' % name for service, name, status in CALLS if status == 12))
    lines.append('* parameters: ' + ', '.join('`%s` of an %s' % (name.split(':')[0], place)
                                               for place, name, _, _, status, *_ in PARAMETERS if status == 501))
    lines.append('* compressed bodies and messages (415 by HTTP), batches with more than 4,096 bytes of rows with BYTES')
    lines.append('* some orders and sizes of inputs in JSON, and outputs, that no row asks for: '
                 '[lb/kserve](../../lb/kserve/README.md)')
    return '\n'.join(lines)


def errors(rows):
    return [(status, asked, ', '.join('`%s: %s`' % field for field in fields.items())) for asked, _, status, fields, _ in rows]


def datatypes():
    for datatype, in_json, _, _, typed in DATATYPES:
        yield (datatype, 'yes' if in_json is not None else 'no: 400', 'yes', '`%s`' % typed if typed else 'no field of its own',
               'yes')


def page():
    text = INTRODUCTION % left_out()
    text += '\n## HTTP\n\nPUT stands for all other methods.\n\n'
    text += table(['path', *METHODS], [('`%s`' % path, *statuses) for path, statuses in ENDPOINTS])
    text += '\nAn infer request whose body is not valid is the 400 above. Errors are `{"error": "..."}`:\n\n'
    text += table(['status', 'asked', 'with'], sorted(errors(ERRORS + LATE_ERRORS), key=lambda row: row[0]))
    text += '\n## gRPC\n\n'
    text += table(['method', 'status'], [('`%s/%s`' % (service, name), STATUSES[status]) for service, name, status in CALLS])
    text += '\n' + table(['status', 'asked'], sorted(
        ((STATUSES[status], asked) for asked, _, status, _ in GRPC_ERRORS + LATE_GRPC_ERRORS), key=lambda row: row[0]))
    text += '\n## Datatypes\n\nIn and out. Outputs by gRPC are always raw.\n\n'
    text += table(['datatype', 'JSON', 'binary', 'gRPC, typed', 'gRPC, raw'], datatypes())
    text += '\n## Batches of BYTES\n\nRows of different lengths, in one answer.\n\n'
    text += table(['rows', 'answer'], [row[:2] for row in BATCHES] + [('gRPC, raw', 'raw'), ('gRPC, typed', 'raw')])
    text += '\n## Parameters\n\n'
    text += table(['of the', 'parameter', 'effect', 'HTTP', 'gRPC'],
                  [(place, '`%s`' % name, effect, status, STATUSES[grpc]) for place, name, effect, _, status, _, _, grpc in
                   PARAMETERS])
    return text


if __name__ == '__main__':
    if sys.argv[1] == '--page':
        with open(sys.argv[2], 'w', encoding='utf-8') as file:
            file.write(page())
    elif open(sys.argv[2], encoding='utf-8').read() != page():
        sys.exit('%s is not what its rows say: tests/net/kserve/rows.py --page %s' % (sys.argv[2], sys.argv[2]))
