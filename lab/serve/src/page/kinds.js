// What page blocks and single pages are, with the colours of the project's other pictures of memory:
// green can be moved, red cannot, blue is a huge page, amber is in doubt. Letters serve those who
// see no colours.

const dark = matchMedia("(prefers-color-scheme: dark)");

// Of page blocks: letter, name, what that means, colour in light and in dark.
const KINDS = {
  mixed: ["X", "mixed", "movable pages beside pages that cannot move", "#c1121f", "#cf202f"],
  unmovable: ["U", "unmovable", "in use, without movable pages", "#7b8696", "#8a96a8"],
  perhaps: ["?", "in doubt", "movable, with single pages that may be in per-CPU lists", "#f5b324", "#f5bd3d"],
  movable: ["M", "movable", "compaction could empty it", "#45b97c", "#4cc38a"],
  huge: ["H", "huge page", "an explicit one, of hugetlb", "#2166c4", "#3d7de6"],
  free: ["F", "free", "a huge page can be had here", "#e4e8ee", "#2e3540"],
  absent: ["–", "no memory", "a hole", "#f7f8fa", "#151920"],
};

// Of single pages.
const USES = {
  anonymous: ["A", "anonymous", "memory of processes", "#45b97c", "#4cc38a"],
  file: ["P", "file", "page cache, or shared memory", "#9ff0b0", "#9fd8cc"],
  slab: ["S", "slab", "kernel objects", "#c1121f", "#cf202f"],
  "page-table": ["T", "page table", "", "#5b2a70", "#b77fc0"],
  untold: ["?", "no flag", "in a per-CPU list, or the kernel's", "#f5b324", "#f5bd3d"],
  reserved: ["R", "reserved", "withheld since boot", "#7e7e85", "#717374"],
  huge: ["H", "huge page", "an explicit one, of hugetlb", "#2166c4", "#3d7de6"],
  free: ["F", "free", "", "#e4e8ee", "#2e3540"],
  hole: ["–", "no memory", "", "#f7f8fa", "#151920"],
};

// Where several blocks share a pixel it shows the first of these that is in it.
const WORST = ["mixed", "unmovable", "perhaps", "movable", "huge", "free", "absent"];

// A kind that a newer server knows is shown as one without a name of its own.
const entryOf = (entries, name) => entries[name] ?? ["", String(name), "", "#000000", "#ffffff"];
const colourOf = (entry) => entry[dark.matches ? 4 : 3];
const paperColour = () => (dark.matches ? "#0f1319" : "#ffffff");
const inkColour = () => (dark.matches ? "#e3e7ec" : "#1a1f27");
const faintColour = () => (dark.matches ? "#9aa5b3" : "#5b6572");
const accentColour = () => (dark.matches ? "#7aaef5" : "#1d5fc0");

// The kind or use that alone is shown in full colour, or null.
let highlighted = null;

// Returns a colour as a pixel of image data, faded if another is highlighted.
function pixelOf(name, entry) {
  const parts = (text) => [1, 3, 5].map((at) => parseInt(text.slice(at, at + 2), 16));
  let [red, green, blue] = parts(colourOf(entry));
  if (highlighted !== null && highlighted !== name) {
    const paper = parts(paperColour());
    [red, green, blue] = [red, green, blue].map((part, at) => Math.round(0.18 * part + 0.82 * paper[at]));
  }
  // Image data are bytes in this order; all machines that browsers run on are little-endian.
  return (255 << 24 | blue << 16 | green << 8 | red) >>> 0;
}
