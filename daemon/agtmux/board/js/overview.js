// Everybody at a glance: how many do what, who waits and for what, and where they all are.

import { h, prose } from "./dom.js";
import { age, blank, card, glyph, paneHref, settle } from "./parts.js";
import { STATES } from "./store.js";
import { nameOf, placeOf, questionOf, stateOf } from "./words.js";

export const title = "Agents";

export function draw(board) {
  const { store } = board;
  if (!store.hasBegun) return waitingForSnapshot(board);
  const waiting = store.waiting();
  const failed = store.failed();
  settle(board, waiting);
  if (!store.panes.size && !store.targets.some((target) => target.error)) {
    return [h("h1", { class: "unseen" }, "Agents"), counts(store), nobody(board)];
  }
  return [
    h("h1", { class: "unseen" }, "Agents"),
    counts(store),
    h(
      "section",
      { key: "waiting", "aria-labelledby": "waiting-title" },
      h("h2", { id: "waiting-title" }, "Waiting for you", waiting.length > 0 && h("span", { class: "number" }, waiting.length)),
      waiting.length > 0
        ? h("ul", { class: "cards" }, waiting.map((pane) => card(board, pane)))
        : h("p", { class: "nobody" }, nobodyWaits(board)),
    ),
    failed.length > 0 &&
      h(
        "section",
        { key: "failed", "aria-labelledby": "failed-title" },
        h("h2", { id: "failed-title" }, "Stopped with an error", h("span", { class: "number" }, failed.length)),
        h("ul", { class: "cards" }, failed.map((pane) => card(board, pane))),
      ),
    h(
      "section",
      { key: "places", "aria-labelledby": "places-title" },
      h("h2", { id: "places-title" }, "Sessions"),
      store.places().map((place) => target(board, place)),
    ),
  ];
}

function counts(store) {
  const counted = store.counts();
  return h(
    "ul",
    { key: "counts", class: "counts", "aria-label": "How many do what" },
    STATES.map((state) =>
      h(
        "li",
        { key: state, class: counted[state] ? state : "none" },
        glyph(state),
        h("span", { class: "count" }, String(counted[state])),
        h("span", { class: "label" }, state.replace("waiting_", "").replaceAll("_", " ")),
      ),
    ),
  );
}

function target(board, { target: name, about, sessions }) {
  const trouble = about && about.health !== "ok" ? about.error?.message : null;
  if (!sessions.length && !trouble) return null;
  return h(
    "div",
    { key: `target ${name}`, class: "target" },
    h("h3", null, name, about?.kind === "ssh" && h("span", { class: "kind" }, about.ssh_target)),
    trouble && h("p", { class: "trouble" }, h("span", { "aria-hidden": "true" }, "⊘ "), trouble),
    h(
      "div",
      { class: "sessions" },
      sessions.map((session) =>
        h(
          "div",
          { key: session.name, class: "session" },
          h("h4", null, session.name),
          h("ul", { class: "rows" }, session.panes.map((pane) => row(board, pane))),
        ),
      ),
    ),
  );
}

function row(board, pane) {
  return h(
    "li",
    { key: pane.runtime_id },
    h(
      "a",
      { class: "row", href: paneHref(pane), "data-stop": true, title: `${stateOf(pane)}, ${placeOf(pane)}` },
      glyph(pane.state),
      h("span", { class: "who" }, nameOf(pane)),
      h("span", { class: "what" }, h("span", { class: "unseen" }, `${stateOf(pane)}: `), what(pane)),
      h("span", { class: "branch" }, pane.branch ?? ""),
      age(board, pane),
    ),
  );
}

/** A command in the order in which it is run, and anything else in that of its script. */
function what(pane) {
  const text = questionOf(pane);
  return pane.attention?.kind === "approval" ? text : text && h("bdi", { own: prose(text) });
}

function nobodyWaits(board) {
  return board.isLive ? "Nobody waits for you." : "Nobody was waiting when it was last known.";
}

function nobody(board) {
  const title = board.isLive ? "No agent is running" : "No agent was running";
  const demo = h("code", null, "agtmux demo");
  return blank("overview", title, h("p", null, "Start one in a tmux pane, or see some that are scripted with ", demo, "."));
}

function waitingForSnapshot(board) {
  return board.status.phase === "lost"
    ? blank("down", "agtmuxd does not answer", h("p", null, "Start it, and open this page again, with ", h("code", null, "agtmux board"), "."))
    : blank("asking", "Asking agtmuxd", h("p", null, "This takes a moment at most."));
}
