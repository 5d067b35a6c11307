// Colours of a terminal as elements: what a capture says of them, and nothing else of it. Unchanged lines stay.

import { plain } from "./dom.js";

const ESCAPE = /\x1b\[([0-9;:]*)m/g;
const FLAGS = {
  1: "bold", 2: "dim", 3: "italic", 4: "underline", 7: "inverse", 9: "strike",
};
const OFF = { 22: ["bold", "dim"], 23: ["italic"], 24: ["underline"], 27: ["inverse"], 29: ["strike"] };
const CUBE = [0, 95, 135, 175, 215, 255];

/** [[{text, fg, bg, flags}]]: runs, line by line. A colour is 0 to 15, "rgb(…)" or null. */
export function parse(text) {
  const lines = [[]];
  let look = { fg: null, bg: null, flags: "" };
  const add = (part) => {
    part.split("\n").forEach((piece, place) => {
      if (place) lines.push([]);
      if (piece) lines.at(-1).push({ text: piece, ...look });
    });
  };
  let end = 0;
  for (const found of text.matchAll(ESCAPE)) {
    add(text.slice(end, found.index));
    look = changed(look, found[1]);
    end = found.index + found[0].length;
  }
  add(text.slice(end));
  return lines;
}

function changed(look, codes) {
  let { fg, bg } = look;
  const flags = new Set(look.flags ? look.flags.split(" ") : []);
  // A colon joins what belongs together, a semicolon may.
  const numbers = codes.split(/[;:]/).map((code) => (code === "" ? null : Number(code)));
  for (let at = 0; at < numbers.length; at += 1) {
    const code = numbers[at] ?? 0;
    if (code === 0) {
      fg = bg = null;
      flags.clear();
    } else if (code === 4 && numbers[at + 1] === 0 && codes.includes(":")) {
      flags.delete("underline");
      at += 1;
    } else if (FLAGS[code]) {
      flags.add(FLAGS[code]);
    } else if (OFF[code]) {
      OFF[code].forEach((flag) => flags.delete(flag));
    } else if (code >= 30 && code <= 37) fg = code - 30;
    else if (code >= 90 && code <= 97) fg = code - 82;
    else if (code >= 40 && code <= 47) bg = code - 40;
    else if (code >= 100 && code <= 107) bg = code - 92;
    else if (code === 39) fg = null;
    else if (code === 49) bg = null;
    else if (code === 38 || code === 48 || code === 58) {
      const [colour, used] = extended(numbers, at + 1, codes);
      if (code === 38) fg = colour;
      else if (code === 48) bg = colour;
      at += used;
    }
  }
  return { fg, bg, flags: [...flags].sort().join(" ") };
}

function extended(numbers, at, codes) {
  if (numbers[at] === 5) return [indexed(numbers[at + 1] ?? 0), 2];
  if (numbers[at] !== 2) return [null, 1];
  // 38:2::r:g:b has a place for a colour space.
  const skip = codes.includes(":") && numbers[at + 1] === null ? 1 : 0;
  const [r, g, b] = [1, 2, 3].map((part) => Math.min(numbers[at + skip + part] ?? 0, 255));
  return [`rgb(${r} ${g} ${b})`, 4 + skip];
}

function indexed(number) {
  if (number < 16) return number;
  if (number > 231) return `rgb(${Array(3).fill(Math.min(number, 255) * 10 - 2312).join(" ")})`;
  const rest = number - 16;
  return `rgb(${CUBE[Math.floor(rest / 36)]} ${CUBE[Math.floor(rest / 6) % 6]} ${CUBE[rest % 6]})`;
}

/** Draws a capture into an element, a line each. */
export function draw(element, text) {
  const lines = parse(plain(text));
  const drawn = (element.agtmuxLines ??= []);
  lines.forEach((runs, number) => {
    const wanted = JSON.stringify(runs);
    if (drawn[number] === wanted) return;
    drawn[number] = wanted;
    const line = element.children[number] ?? element.appendChild(document.createElement("div"));
    line.replaceChildren(...runs.map(span));
  });
  drawn.length = lines.length;
  while (element.children.length > lines.length) element.lastChild.remove();
  return Math.max(0, ...lines.map((runs) => runs.reduce((width, run) => width + run.text.length, 0)));
}

function span({ text, fg, bg, flags }) {
  if (fg === null && bg === null && !flags) return document.createTextNode(text);
  const made = document.createElement("span");
  made.textContent = text;
  const names = flags ? flags.split(" ") : [];
  const [front, back] = names.includes("inverse") ? [bg ?? "back", fg ?? "front"] : [fg, bg];
  if (typeof front === "string" && front.startsWith("rgb")) made.style.color = front;
  else if (front !== null) names.push(`f-${front}`);
  if (typeof back === "string" && back.startsWith("rgb")) made.style.backgroundColor = back;
  else if (back !== null) names.push(`b-${back}`);
  if (names.length) made.className = names.join(" ");
  return made;
}
