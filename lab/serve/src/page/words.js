// Numbers, sizes and times as text; elements.
"use strict";

const byId = (id) => document.getElementById(id);

// Text from the host, such as names of processes, is only ever set as text.
function element(tag, text = "", kind = "") {
  const made = document.createElement(tag);
  made.textContent = text;
  if (kind !== "") made.className = kind;
  return made;
}

// An element whose text does not change is not touched: a selection in it stays.
function setText(id, text) {
  if (byId(id).textContent !== text) byId(id).textContent = text;
}

const isKnown = (value) => value !== null && value !== undefined;

function countText(count) {
  return isKnown(count) ? Math.round(count).toLocaleString("en-US") : "–";
}

function bytesText(bytes) {
  if (!isKnown(bytes)) return "–";
  const units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
  let unit = 0;
  while (bytes >= 1024 && unit < units.length - 1) {
    bytes /= 1024;
    unit += 1;
  }
  return `${bytes >= 100 ? Math.round(bytes) : +bytes.toFixed(1)} ${units[unit]}`;
}

function shareText(share) {
  if (!isKnown(share)) return "–";
  return share > 0 && share < 0.001 ? "<0.1 %" : `${(100 * share).toFixed(1)} %`;
}

function rateText(perMinute) {
  return isKnown(perMinute) ? `${perMinute >= 10 ? countText(perMinute) : +perMinute.toFixed(1)}/min` : "–";
}

const framesText = (count) => bytesText(isKnown(count) ? count * now.frame_bytes : null);
const hex = (number) => `0x${number.toString(16)}`;

function ageText(ms) {
  const seconds = Math.max(0, Math.round(ms / 1000));
  if (seconds < 120) return `${seconds} s`;
  if (seconds < 7200) return `${Math.round(seconds / 60)} min`;
  if (seconds < 172800) return `${Math.round(seconds / 3600)} h`;
  return `${Math.round(seconds / 86400)} days`;
}

const two = (number) => String(number).padStart(2, "0");

function dayText(time) {
  return `${time.getFullYear()}-${two(time.getMonth() + 1)}-${two(time.getDate())}`;
}

// The browser's local time, without the day if that is today.
function timeText(ms) {
  const time = new Date(ms);
  const clock = `${two(time.getHours())}:${two(time.getMinutes())}:${two(time.getSeconds())}`;
  return dayText(time) === dayText(new Date()) ? clock : `${dayText(time)} ${clock}`;
}

function zoneOfTimeText() {
  const east = -new Date().getTimezoneOffset();
  const text = `${east < 0 ? "−" : "+"}${two(Math.floor(Math.abs(east) / 60))}:${two(Math.abs(east) % 60)}`;
  return east === 0 ? "UTC" : `UTC${text}`;
}
