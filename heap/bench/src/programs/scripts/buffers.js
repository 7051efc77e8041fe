// Node, as a malloc library sees it: buffers outside of its own heap, of all sizes, that live for a
// while; JSON; compression in four threads. Prints a line that is the same each time.
'use strict';
const { createHash } = require('node:crypto');
const { readFileSync, writeFileSync } = require('node:fs');
const { promisify } = require('node:util');
const zlib = require('node:zlib');

const AMOUNT = @AMOUNT@;
const SETTLE = @SETTLE@;
const [deflate, inflate] = [promisify(zlib.deflate), promisify(zlib.inflate)];

function filled(seed, length) {
  const bytes = Buffer.allocUnsafeSlow(length).fill(seed & 255);
  let state = seed | 1;
  for (let at = 0; at < length; at += 7) {
    state = (Math.imul(state, 1103515245) + 12345) >>> 0;
    bytes[at] = state >>> 24;
  }
  return bytes;
}

async function job(seed) {
  const kept = new Map();
  let sum = 0;
  for (let at = 0; at < 400; at += 1) {
    const bytes = filled(seed * 400 + at, 1 + ((seed * 31 + at * 7919) % 9000));
    kept.set(at % 97, bytes);
    sum += kept.get((at * 7) % 97)?.length ?? 0;
  }
  const text = JSON.stringify([...kept.values()].slice(0, 20).map((bytes) => bytes.toString('base64')));
  const back = await inflate(await deflate(text, { level: 1 }));
  return sum + ' ' + createHash('sha256').update(back).digest('hex');
}

async function main() {
  const digests = createHash('sha256');
  for (let first = 0; first < AMOUNT; first += 8) {
    const jobs = Array.from({ length: Math.min(8, AMOUNT - first) }, (_, at) => job(first + at));
    for (const done of await Promise.all(jobs)) digests.update(done);
  }
  console.log(digests.digest('hex'));
  if (SETTLE > 0) {
    await promisify(setTimeout)(SETTLE * 1000);
    writeFileSync('settled', /VmRSS:\s*(\d+)/.exec(readFileSync('/proc/self/status', 'utf8'))[1]);
  }
}

main().catch((failure) => { console.error(failure); process.exit(1); });
