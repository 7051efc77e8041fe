// Films: their descriptions, and the decoding of the shots that are shown.

const about = JSON.parse(document.getElementById("about").textContent);
const KINDS = about.kinds;
const ABSENT = 0, FREE = 1;
const MOSTLY_FREE = 8;
// The size of the cache of decoded shots, for all films together.
const KEPT_BYTES = 96e6;

const base64 = Uint8Array.fromBase64
  ? (text) => Uint8Array.fromBase64(text)
  : (text) => Uint8Array.from(atob(text), (character) => character.charCodeAt(0));

async function inflate(text) {
  const stream = new Blob([base64(text)]).stream().pipeThrough(new DecompressionStream("deflate"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

function applyDelta(before, change) {
  const row = new Uint8Array(before.length);
  for (let i = 0; i < row.length; i += 1) row[i] = before[i] ^ change[i];
  return row;
}

class Film {
  constructor(film, number) {
    Object.assign(this, film);
    this.number = number;
    this.cells = this.zones.reduce((sum, zone) => sum + zone.cells, 0);
    this.boxes = this.zones.reduce((sum, zone) => sum + zone.boxes, 0);
    this.kept = new Map();
    this.keep = Math.max(4, Math.floor(KEPT_BYTES / about.films.length / (this.cells / 2)));
    this.queue = Promise.resolve();
  }

  get end() {
    return this.shots[this.shots.length - 1].seconds;
  }

  // Returns the index of the last shot taken at or before this time.
  shotAt(seconds) {
    let low = 0, high = this.shots.length - 1;
    while (low < high) {
      const middle = Math.ceil((low + high) / 2);
      if (this.shots[middle].seconds <= seconds + 1e-6) low = middle; else high = middle - 1;
    }
    return low;
  }

  // Returns (a promise of) the cells of shot i, two per byte, the first in the low half.
  row(i) {
    const task = this.queue.then(() => this.kept.get(i) ?? this.decode(i));
    this.queue = task.catch(() => {});
    return task;
  }

  async decode(i) {
    this.streams ??= document.getElementById(`film-${this.number}`).textContent.split(" ");
    let from = i;
    while (!this.shots[from].key && !this.kept.has(from - 1)) from -= 1;
    const before = this.shots[from].key ? null : this.kept.get(from - 1);
    const parts = await Promise.all(this.streams.slice(from, i + 1).map(inflate));
    let row = before;
    parts.forEach((part, k) => {
      row = this.shots[from + k].key ? part : applyDelta(row, part);
      this.kept.set(from + k, row);
    });
    for (const old of this.kept.keys()) {
      if (this.kept.size <= this.keep) break;
      this.kept.delete(old);
    }
    return row;
  }
}

const cellOf = (row, i) => (i & 1 ? row[i >> 1] >> 4 : row[i >> 1] & 15);

// FNV-1a, as in reel.rs.
function checksum(row) {
  let hash = 0x811c9dc5;
  for (let i = 0; i < row.length; i += 1) hash = Math.imul(hash ^ row[i], 0x01000193);
  return hash >>> 0;
}
