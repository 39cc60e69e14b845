// SPDX-License-Identifier: BSD-3-Clause
//
// gRPC's client for Node.js against a load balancer: raw and typed contents, streams, deadlines, cancels, 4 MiB, many calls at
// once. Ends with 0, or with 1 and what went wrong.
//
//   node grpc_js.js PROTO HOST MLP-PORT ECHO-PORT REPLY WORKER
//
// REPLY: a file with the model's own answer to the picture. WORKER: the process of the worker of `echo`.
'use strict';

const assert = require('assert');
const crypto = require('crypto');
const fs = require('fs');
const grpc = require('@grpc/grpc-js');
const loader = require('@grpc/proto-loader');

const [proto, host, mlpPort, echoPort, replyFile, worker] = process.argv.slice(2);
const own = fs.readFileSync(replyFile);
const definition = loader.loadSync(proto, {keepCase: true, longs: String, defaults: true, oneofs: true});
const Service = grpc.loadPackageDefinition(definition).inference.GRPCInferenceService;
const options = {'grpc.max_receive_message_length': 64 << 20, 'grpc.max_send_message_length': 64 << 20};
const credentials = grpc.credentials.createInsecure();
const mlp = new Service(`${host}:${mlpPort}`, credentials, options);
const echo = new Service(`${host}:${echoPort}`, credentials, options);

const rows = '005d910000dfaf5003f20b8004c008800580098004b01c7002e5ac00006da000';
const pixels = Buffer.from([...rows].map((pixel) => parseInt(pixel, 17)));
const largest = '18446744073709551615';

function soon(ms) {
  return {deadline: Date.now() + (ms || 20000)};
}

// The call's answer as a promise.
function ask(client, method, request, wishes) {
  return new Promise((resolve, reject) => {
    client[method](request, new grpc.Metadata(), wishes || soon(), (error, answer) => error ? reject(error) : resolve(answer));
  });
}

async function refused(code, promise, words) {
  let error;
  try {
    await promise;
  } catch (caught) {
    error = caught;
  }
  assert(error, `no status ${code}`);
  assert.strictEqual(error.code, code, error.message);
  assert(!words || error.details.includes(words), error.details);
}

function picture(typed) {
  const request = {model_name: 'mlp', id: 'seven', inputs: [
    {name: 'id', datatype: 'UINT64', shape: [1, 1]}, {name: 'pixels', datatype: 'UINT8', shape: [1, 64]}]};
  if (typed) {
    request.inputs[0].contents = {uint64_contents: [largest]};
    request.inputs[1].contents = {uint_contents: [...pixels]};
  } else {
    request.raw_input_contents = [Buffer.alloc(8, 0xff), pixels];
  }
  return request;
}

function bytes(data) {
  return {model_name: 'echo', inputs: [{name: 'input0', datatype: 'UINT8', shape: [data.length]}], raw_input_contents: [data]};
}

function isOwn(answer) {
  assert.strictEqual(answer.id, 'seven');
  assert.deepStrictEqual(answer.outputs.map((o) => o.name), ['id', 'class', 'scores']);
  assert(Buffer.concat(answer.raw_output_contents).equals(own), 'other bytes than by UDP');
}

async function documents() {
  assert((await ask(mlp, 'ServerLive', {})).live);
  assert((await ask(mlp, 'ServerReady', {})).ready);
  assert((await ask(mlp, 'ModelReady', {name: 'mlp'})).ready);
  const described = await ask(mlp, 'ModelMetadata', {name: 'mlp'});
  assert.deepStrictEqual(described.inputs[1].shape, ['-1', '64']);
  assert.strictEqual((await ask(mlp, 'ModelConfig', {name: 'mlp'})).config.max_batch_size, 32);
  const counted = await ask(mlp, 'ModelStatistics', {name: 'mlp'});
  assert.strictEqual(counted.model_stats[0].name, 'mlp');
  const listed = await ask(mlp, 'RepositoryIndex', {ready: true});
  assert.deepStrictEqual(listed.models.map((m) => [m.name, m.state]), [['mlp', 'READY']]);
}

async function unary() {
  isOwn(await ask(mlp, 'ModelInfer', picture(false)));
  isOwn(await ask(mlp, 'ModelInfer', picture(true)));
  for (const answer of await Promise.all(Array.from({length: 200}, (_, n) => ask(mlp, 'ModelInfer', picture(n % 2 === 0)))))
    isOwn(answer);
  for (const size of [1, 1000, 65536, 4 << 20, 4 << 20]) {
    const sent = crypto.randomBytes(size);
    const answer = await ask(echo, 'ModelInfer', bytes(sent));
    assert(answer.raw_output_contents[0].equals(sent), `${size} bytes come back as others`);
  }
}

async function errors() {
  await refused(grpc.status.NOT_FOUND, ask(mlp, 'ModelInfer', {model_name: 'x'}), "no model 'x'");
  const short = picture(false);
  short.raw_input_contents[1] = pixels.subarray(1);
  await refused(grpc.status.INVALID_ARGUMENT, ask(mlp, 'ModelInfer', short), 'the shape says 64');
  await refused(grpc.status.RESOURCE_EXHAUSTED, ask(echo, 'ModelInfer', bytes(Buffer.alloc((4 << 20) + 1))));
  isOwn(await ask(mlp, 'ModelInfer', picture(false)));
}

// 20 messages of a stream; each has its answer, one of them an error.
function stream() {
  return new Promise((resolve, reject) => {
    const call = echo.ModelStreamInfer(new grpc.Metadata(), soon());
    const sent = new Map();
    let failed = 0;
    for (let n = 0; n < 20; n++) {
      const request = bytes(crypto.randomBytes(1 + n * 1000));
      request.id = `${n}`;
      if (n === 7)
        request.inputs[0].shape = [1];
      else
        sent.set(request.id, request.raw_input_contents[0]);
      call.write(request);
    }
    call.end();
    call.on('data', (answer) => {
      if (answer.error_message) {
        failed++;
        return;
      }
      const {id, raw_output_contents: [data]} = answer.infer_response;
      if (!sent.has(id) || !sent.get(id).equals(data))
        reject(new Error(`message ${id} has another answer`));
      sent.delete(id);
    });
    call.on('error', reject);
    call.on('end', () => sent.size === 0 && failed === 1 ? resolve() : reject(new Error(`${sent.size} of a stream, ${failed}`)));
  });
}

// The worker is halted: a deadline passes, a call is cancelled, and the worker's own answer comes when it goes on.
async function late() {
  process.kill(Number(worker), 'SIGSTOP');
  await refused(grpc.status.DEADLINE_EXCEEDED, ask(echo, 'ModelInfer', bytes(Buffer.from('late')), soon(150)));
  await new Promise((resolve, reject) => {
    const call = echo.ModelInfer(bytes(Buffer.from('cancelled')), new grpc.Metadata(), soon(), (error) =>
      error && error.code === grpc.status.CANCELLED ? resolve() : reject(error || new Error('it was answered')));
    // Behind the answer to a later call, the first one has been sent.
    ask(echo, 'ServerLive', {}).then(() => call.cancel(), reject);
  });
  const waiting = ask(echo, 'ModelInfer', bytes(Buffer.from('waits')));
  await ask(echo, 'ServerLive', {});
  process.kill(Number(worker), 'SIGCONT');
  assert.strictEqual((await waiting).raw_output_contents[0].toString(), 'waits');
}

async function main() {
  // The stream comes before 4 MiB: room for replies is set aside by what this client's replies had lately, and a stream that
  // asks for more at once is refused in part.
  for (const step of [documents, stream, unary, errors, late])
    await step().catch((error) => {
      throw new Error(`${step.name}: ${error.stack}`);
    });
}

main().then(() => process.exit(0), (error) => {
  console.error(error.message);
  process.exit(1);
});
