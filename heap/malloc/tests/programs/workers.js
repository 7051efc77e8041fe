// Node under the allocator: worker threads that pass buffers to each other, JSON, promises, zlib and hashes in the
// thread pool, child processes. Prints one line per part, the same on every run.
'use strict';
const assert = require('node:assert');
const { execFile } = require('node:child_process');
const { createHash, scrypt } = require('node:crypto');
const { promisify } = require('node:util');
const { Worker, isMainThread, parentPort, workerData } = require('node:worker_threads');
const zlib = require('node:zlib');

const digest = (bytes) => createHash('sha256').update(bytes).digest('hex');

// A Buffer outside the JavaScript heap, filled from `seed`.
function filled(seed, length) {
  const bytes = Buffer.allocUnsafeSlow(length);
  let state = seed | 1;
  for (let at = 0; at < length; at += 1) {
    state = (Math.imul(state, 1103515245) + 12345) >>> 0;
    bytes[at] = state >>> 24;
  }
  return bytes;
}

function record(seed) {
  const bytes = filled(seed, 64);
  return { seed, words: [...bytes].map((byte) => 'w'.repeat(byte % 23)), tree: { bytes: [...bytes], half: seed / 2 } };
}

// In a worker: makes buffers, gives them away, and gets those of the worker before it to free.
function worker() {
  const digests = [];
  parentPort.on('message', ({ give, bytes }) => {
    if (bytes) digests.push(digest(bytes));
    if (give === undefined) return parentPort.close();
    const made = filled(workerData * 1000 + give, 1 + ((give * 7919) % 40000));
    const text = JSON.stringify(record(give));
    assert.deepStrictEqual(JSON.parse(text), record(give));
    parentPort.postMessage({ made: made.buffer, text: digest(text) }, [made.buffer]);
  });
  process.on('exit', () => assert.ok(digests.length > 0));
}

// Each of three workers makes 400 buffers; each goes to the next worker, which reads it and drops it.
function ring() {
  const all = [];
  const workers = [0, 1, 2].map((number) => new Worker(__filename, { workerData: number }));
  const finished = workers.map((made, number) => new Promise((resolve, reject) => {
    let given = 0;
    made.on('error', reject);
    made.on('exit', (code) => (code === 0 ? resolve() : reject(new Error(`worker ${number} ended with ${code}`))));
    made.on('message', ({ made: buffer, text }) => {
      const bytes = new Uint8Array(buffer);
      all.push(digest(bytes) + text);
      given += 1;
      const next = given < 400 ? { give: given } : {};
      // Its own buffer goes back every other time, so that memory is freed both at home and abroad.
      made.postMessage({ ...next, bytes }, given % 2 ? [buffer] : []);
    });
    made.postMessage({ give: 0 });
  }));
  return Promise.all(finished).then(() => `${all.length} ${digest(all.sort().join(''))}`);
}

// Workers that live for one answer only.
async function generations() {
  const lines = [];
  for (let round = 0; round < 8; round += 1) {
    const answers = [0, 1].map((number) => new Promise((resolve, reject) => {
      const brief = new Worker(
        `const { parentPort } = require('node:worker_threads');
         parentPort.postMessage(Array.from({ length: 2000 }, (_, at) => ({ at, text: 'x'.repeat(at % 50) })));`,
        { eval: true });
      brief.on('message', (answer) => resolve(answer.length + number));
      brief.on('error', reject);
    }));
    lines.push((await Promise.all(answers)).join('+'));
  }
  return lines.join(' ');
}

// zlib, brotli and scrypt allocate in the threads of the pool.
async function pool() {
  const [gzip, gunzip, brotli, unbrotli, derive] =
    [zlib.gzip, zlib.gunzip, zlib.brotliCompress, zlib.brotliDecompress, scrypt].map((call) => promisify(call));
  const quality = { params: { [zlib.constants.BROTLI_PARAM_QUALITY]: 4 } };
  const jobs = Array.from({ length: 60 }, async (_, number) => {
    const bytes = Buffer.from(JSON.stringify(Array.from({ length: 100 }, (__, at) => record(number * 100 + at))));
    const there = await Promise.all([gzip(bytes), brotli(bytes, quality)]);
    const back = await Promise.all([gunzip(there[0]), unbrotli(there[1])]);
    back.forEach((again) => assert.ok(again.equals(bytes)));
    return digest(bytes) + (await derive('pass', `salt ${number}`, 32, { N: 256 })).toString('hex');
  });
  return digest((await Promise.all(jobs)).join(''));
}

// Objects that die young, Buffers of all sizes, strings that become large.
async function churn() {
  let sum = 0;
  const kept = new Map();
  for (let at = 0; at < 60000; at += 1) {
    kept.set(at % 997, Buffer.allocUnsafeSlow((at * 31) % 9000).fill(at & 255));
    if (at % 5 === 0) sum += kept.get((at * 7) % 997)?.length ?? 0;
    if (at % 1000 === 0) await Promise.resolve();
  }
  const text = Array.from({ length: 200000 }, (_, at) => `line ${at}`).join('\n');
  return `${sum} ${digest(text)} ${digest(Buffer.from(text, 'utf16le'))}`;
}

async function processes() {
  const run = promisify(execFile);
  const answers = await Promise.all([1, 2, 3].map((number) =>
    run(process.execPath, ['-p', `JSON.stringify(Array.from({ length: 1000 }, (_, at) => at * ${number})).length`])));
  return answers.map(({ stdout }) => stdout.trim()).join(' ');
}

async function main() {
  for (const part of [ring, generations, pool, churn, processes]) console.log(part.name, await part());
}

if (isMainThread) main().catch((failure) => { console.error(failure); process.exit(1); });
else worker();
