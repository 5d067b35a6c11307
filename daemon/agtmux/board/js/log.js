// Who did what to which agent, and what came of it; the latest first.

import { h } from "./dom.js";
import { ask } from "./session.js";
import { clockOf, decoded } from "./words.js";

const MOST = 100;
const PAUSE = 1_500;

export class LogView {
  title = "Log";
  #board;
  #items = null;
  #trouble = "";
  #timer = 0;
  #isHere = false;

  constructor(board) {
    this.#board = board;
  }

  enter() {
    this.#isHere = true;
    this.#refresh();
  }

  leave() {
    this.#isHere = false;
    clearTimeout(this.#timer);
    this.#timer = 0;
  }

  connected() {
    this.#refresh();
  }

  /** An agent has moved, and perhaps because of an action. Where they all do, all the time, it is looked at now and then. */
  changed() {
    if (this.#isHere) this.#timer ||= setTimeout(() => this.#refresh(), PAUSE);
  }

  async #refresh() {
    clearTimeout(this.#timer);
    this.#timer = 0;
    try {
      this.#items = (await ask("GET", `/v1/actions?limit=${MOST}`)).items;
      this.#trouble = "";
    } catch (error) {
      this.#trouble = error.message;
    }
    this.#board.draw();
  }

  draw() {
    return [
      h("div", { key: "head", class: "view-head" }, h("h1", null, "Log")),
      this.#trouble && h("p", { key: "trouble", class: "trouble" }, this.#trouble),
      !this.#items && !this.#trouble && h("p", { key: "asking", class: "silence" }, "…"),
      this.#items?.length === 0 && h("p", { key: "none", class: "silence" }, "Nothing was done to any agent yet."),
      this.#items?.length > 0 && h("ol", { key: "log", class: "log" }, this.#items.map((item) => this.#row(item))),
    ];
  }

  #row(item) {
    const { about } = item;
    const place = placeIn(item);
    return h(
      "li",
      { key: item.action_id, class: item.error_code ? "refused" : "" },
      h("time", { datetime: item.requested_at }, clockOf(item.requested_at, this.#board.store.now)),
      h("span", { class: "log-what" }, h("b", null, item.action_type), ` ${item.agent_type ?? ""}`),
      h("span", { class: "log-result" }, item.result_code.replaceAll("_", " "), item.error_code && h("span", { class: "code" }, ` ${item.error_code}`)),
      h("span", { class: "log-by" }, about.actor ? `by ${about.actor}` : ""),
      h("span", { class: "log-place" }, place),
      h("span", { class: about.question ? "log-about log-question" : "log-about" }, about.question ?? (about.characters === undefined ? "" : `${about.characters} characters`)),
    );
  }
}

/** As the overview calls it. Of a ref only the session's name is written for an address; `%40` is a pane. */
function placeIn(item) {
  const [target, session, , pane] = (item.ref ?? "").replace(/^pane:/, "").split("/");
  return pane ? `${target} / ${decoded(session)} ${pane}` : `${item.target} / ${item.pane_id}`;
}
