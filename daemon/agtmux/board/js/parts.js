// What several views draw: signs of states, cards of those who wait, and what stands where there is nothing.

import { approve, approvePartly, copyAttach, deny, explained } from "./deeds.js";
import { h, prose } from "./dom.js";
import { ageOf, nameOf, placeOf, questionOf, stateOf } from "./words.js";

// A list that has just changed may have put another answer under the pointer.
const SETTLES = 450;

const ring = (x, y) => `M${x + 1.6} ${y}a1.6 1.6 0 1 1-3.2 0 1.6 1.6 0 1 1 3.2 0z`;
// Drawn, as fonts differ: the same shapes as the menu's ✗ ! ? ▶ ✓ · ~, and those of the views.
const SHAPES = {
  error: ["line", "M4.6 4.6l6.8 6.8M11.4 4.6l-6.8 6.8"],
  waiting_approval: ["line", "M8 3.4v5.4M8 12.4v.2"],
  waiting_input: ["line", "M5.6 5.6a2.4 2.4 0 1 1 3.5 2.2c-.8.4-1.1.8-1.1 1.6M8 12.4v.2"],
  running: ["solid", "M5 3.4v9.2l7.4-4.6z"],
  completed: ["line", "M3.6 8.6l2.9 2.9 5.9-6.6"],
  idle: ["solid", "M5.6 8a2.4 2.4 0 1 0 4.8 0 2.4 2.4 0 1 0-4.8 0"],
  unknown: ["line", "M3 9.2c1.2-2.4 3-2.4 5-1.2s3.8 1.2 5-1.2"],
  overview: ["line", "M2.5 4h11M2.5 8h11M2.5 12h7"],
  worktrees: ["line", `M4.5 5.4v5.2M11.5 5.4c0 2.8-4 2.2-5.6 4.4${ring(4.5, 3.8)}${ring(4.5, 12.2)}${ring(11.5, 3.8)}`],
  down: ["line", "M14 8A6 6 0 1 1 2 8a6 6 0 0 1 12 0zM3.8 12.2l8.4-8.4"],
  key: ["line", "M8.6 7.4l5-5M11 5l1.8 1.8M9.4 10a3.2 3.2 0 1 1-6.4 0 3.2 3.2 0 1 1 6.4 0z"],
  asking: ["solid", "M2.6 8a1.2 1.2 0 1 0 2.4 0 1.2 1.2 0 1 0-2.4 0M6.8 8a1.2 1.2 0 1 0 2.4 0 1.2 1.2 0 1 0-2.4 0M11 8a1.2 1.2 0 1 0 2.4 0 1.2 1.2 0 1 0-2.4 0"],
  log: ["line", "M8 4.5V8l2.5 1.8M14 8A6 6 0 1 1 2 8a6 6 0 0 1 12 0z"],
};

export function shape(name) {
  return (element) => {
    if (element.agtmuxShape === name) return;
    element.agtmuxShape = name;
    const picture = document.createElementNS("http://www.w3.org/2000/svg", "svg");
    picture.setAttribute("viewBox", "0 0 16 16");
    const path = document.createElementNS("http://www.w3.org/2000/svg", "path");
    const [kind, drawn] = SHAPES[name] ?? SHAPES.unknown;
    path.setAttribute("class", kind);
    path.setAttribute("d", drawn);
    picture.append(path);
    element.replaceChildren(picture);
  };
}

export function glyph(state) {
  return h("span", { class: `glyph ${state}`, "aria-hidden": "true", "data-shape": state, own: shape(state) });
}

export function age(board, pane) {
  return h("time", { class: "age", datetime: pane.updated_at }, ageOf(board.store.now - Date.parse(pane.updated_at)));
}

export function paneHref(pane) {
  return `#/pane/${encodeURIComponent(pane.runtime_id)}`;
}

/** Who waits, what for, and the answers that can be given from here. */
export function card(board, pane) {
  const { attention } = pane;
  const isApproval = pane.state === "waiting_approval";
  return h(
    "li",
    { key: pane.runtime_id, class: `card ${pane.state}`, "data-ref": pane.ref },
    h(
      "a",
      { class: "card-head", href: paneHref(pane), "data-stop": true },
      glyph(pane.state),
      h("span", { class: "who" }, nameOf(pane)),
      h("span", { class: "place" }, placeOf(pane)),
      pane.branch && h("span", { class: "branch" }, pane.branch),
      h("span", { class: "unseen" }, `, ${stateOf(pane)}, since`),
      age(board, pane),
    ),
    question(pane),
    attention?.options?.length > 0 && !isApproval && options(attention),
    h("div", { class: "deeds" }, isApproval && answers(board, pane), copy(board, pane)),
  );
}

export function question(pane) {
  const { attention } = pane;
  const isCommand = attention?.kind === "approval";
  // Approve stands below all of the request, and never beside a part of it that has to be scrolled.
  const detail = pane.state === "waiting_approval" ? "detail in-full" : "detail";
  return h(
    "div",
    { class: "question" },
    isCommand
      ? h("p", { class: "asks command" }, questionOf(pane) || "It does not say what.")
      : h("p", { class: "asks", dir: "auto", own: prose(questionOf(pane) || "It does not say what.") }),
    attention?.detail &&
      attention.detail !== attention.summary &&
      h("pre", { class: detail, tabindex: "0", role: "group", "aria-label": "In full" }, attention.detail),
  );
}

export function options(attention) {
  return h("ol", { class: "options" }, attention.options.map((option) => h("li", null, option)));
}

/** Tells the dialog that is shown from the agent's next one. */
export function dialogOf(pane) {
  return `${pane.state_version} ${pane.attention?.fingerprint ?? ""}`;
}

/** Approve and deny, of this dialog alone: another one gets buttons of its own. */
export function answers(board, pane, reason = () => "") {
  if (pane.capabilities?.supports_waiting_approval === false) {
    return [];
  }
  const isOff = !board.isLive || board.isBusy(pane);
  const button = (name, label, deed) =>
    h(
      "button",
      {
        key: `${name} ${dialogOf(pane)}`,
        type: "button",
        class: name,
        disabled: isOff,
        "aria-label": `${label}: ${nameOf(pane)}, ${questionOf(pane)}`,
        onclick: () => answer(board, pane, deed, name === "approve" ? "Approved" : "Denied"),
      },
      label,
    );
  const no = button("deny", "Deny", (shown) => deny(shown, reason()));
  if (pane.attention?.whole) return [button("approve", "Approve", approve), no];
  const key = `${pane.runtime_id} ${dialogOf(pane)}`;
  const missing = h("p", { key: `missing ${key}`, class: "missing" }, `${whyPartial(pane)} Read it in its pane first.`);
  if (board.reviewed.has(key)) return [missing, button("approve", "Approve all the same", approvePartly), no];
  const review = h(
    "button",
    {
      key: `review ${key}`,
      type: "button",
      class: "review",
      disabled: isOff,
      "aria-label": `Review: ${nameOf(pane)}, ${questionOf(pane)}`,
      onclick: () => {
        board.reviewed.add(key);
        // Approve takes this button's place: the second click of a double click is for none.
        unsettle(board);
        board.draw();
      },
    },
    "Review",
  );
  return [missing, review, no];
}

// Why what is shown is not all that an approval would be for.
const PARTIAL = {
  not_on_screen: "Only a part of this request is visible in its pane.",
  left_out: "The agent leaves out a part of this request.",
  too_long: "This request is too long to be shown whole.",
  redacted: "A hidden secret may hide code as well.",
  unreadable: "This request has characters that cannot be shown.",
  screen_differs: "The agent reported another request than its screen shows.",
};

function whyPartial(pane) {
  return PARTIAL[pane.attention?.incomplete_reason] ?? "The agent has not said what it would do.";
}

/** Else whoever answers is told to look again. */
export function isSettled(board) {
  if (Date.now() >= board.settledAt) return true;
  board.tell("It has just changed. Look again, then answer.");
  return false;
}

async function answer(board, pane, deed, said) {
  if (!isSettled(board)) return;
  board.setBusy(pane, true);
  try {
    const done = await deed(pane);
    const isSure = done.result_code === "delivered";
    board.tell(isSure ? `${said}: ${questionOf(pane)}` : `${said}, and ${done.result_code.replaceAll("_", " ")}.`);
  } catch (error) {
    board.tell(explained(error), "trouble");
  } finally {
    board.setBusy(pane, false);
  }
}

/** To be called with the order in which answers can be given, whenever it is drawn. */
export function settle(board, waiting) {
  const order = JSON.stringify([board.isLive, waiting.map((pane) => [pane.runtime_id, pane.state_version, pane.attention])]);
  // Also where it comes up as a whole: the click that has brought it may be followed by another.
  if (board.order !== order && (board.order !== undefined || waiting.length > 0)) unsettle(board);
  board.order = order;
  document.body.classList.toggle("unsettled", Date.now() < board.settledAt);
}

/** Nothing is answered for a moment. */
function unsettle(board) {
  board.settledAt = Date.now() + SETTLES;
  setTimeout(() => board.draw(), SETTLES + 10);
}

export function copy(board, pane) {
  return h(
    "button",
    {
      key: "copy",
      type: "button",
      class: "quiet",
      "aria-label": `Copy attach command: ${nameOf(pane)}, ${placeOf(pane)}`,
      onclick: async () => board.tell(await copyAttach(pane)),
    },
    "Copy attach",
  );
}

export function blank(sign, title, ...more) {
  return h(
    "div",
    { class: "blank" },
    h("div", { class: "blank-sign", "aria-hidden": "true", own: shape(sign) }),
    h("h1", null, title),
    more,
  );
}
