// Where agents work: the work trees of their repositories, what is not committed there, and what was said in them.

import { h, write } from "./dom.js";
import { blank, glyph, paneHref } from "./parts.js";
import { ask, withQuery } from "./session.js";
import { Talk, messageList } from "./talk.js";
import { shortPath } from "./words.js";

const SUBSCRIPTION = "worktree";
const KINDS = [
  [/^diff --git/, "file"],
  [/^(index|old mode|new mode|similarity|rename|copy|new file|deleted file|--- |\+\+\+ )/, "about"],
  [/^@@/, "place"],
  [/^\+/, "added"],
  [/^-/, "removed"],
];

export class WorktreesView {
  title = "Worktrees";
  #board;
  #items = null;
  #trouble = "";
  #errors = [];
  #open = null;
  #isAsking = false;
  #isHere = false;

  constructor(board) {
    this.#board = board;
  }

  enter() {
    this.#isHere = true;
    this.refresh();
    this.#follow();
  }

  leave() {
    this.#isHere = false;
    this.#board.live.unsubscribe(SUBSCRIPTION);
  }

  connected() {
    this.refresh();
  }

  async refresh() {
    if (this.#isAsking) return;
    this.#isAsking = true;
    this.#board.draw();
    try {
      const [answer] = await Promise.all([ask("GET", "/v1/worktrees"), this.#askDiff()]);
      this.#items = answer.items;
      this.#errors = answer.target_errors;
      this.#trouble = "";
    } catch (error) {
      this.#trouble = error.message;
    }
    this.#isAsking = false;
    this.#board.draw();
  }

  #toggle(item) {
    const key = keyOf(item);
    const wasOpen = this.#open?.key === key;
    const { target, path } = item;
    const talk = new Talk({ worktree: path, target }, () => this.#board.draw());
    this.#open = wasOpen ? null : { key, target, path, diff: null, trouble: "", talk };
    this.#follow();
    this.#askDiff();
    this.#board.draw();
  }

  /** Of what is open by then. */
  async #askDiff() {
    const open = this.#open;
    if (!open) return;
    try {
      open.diff = await ask("GET", withQuery("/v1/worktrees/diff", { target: open.target, path: open.path }));
      open.trouble = "";
    } catch (error) {
      open.trouble = error.message;
    }
    this.#board.draw();
  }

  #follow() {
    const open = this.#open;
    this.#board.live.unsubscribe(SUBSCRIPTION);
    if (!open || !this.#isHere || document.hidden) return;
    const place = { worktree: open.path, target: open.target };
    this.#board.live.subscribe(SUBSCRIPTION, () => place, (told) => open.talk.told(told));
  }

  draw() {
    const head = h(
      "div",
      { key: "head", class: "view-head" },
      h("h1", null, "Worktrees"),
      h("button", { type: "button", class: "quiet", disabled: this.#isAsking, onclick: () => this.refresh() }, "Look again"),
    );
    const told = this.#items ? `Not as it is now: ${this.#trouble}` : this.#trouble;
    const trouble = this.#trouble && h("p", { key: "trouble", class: "trouble" }, told);
    if (!this.#items) return [head, trouble || h("p", { key: "asking", class: "silence" }, "Asking git …")];
    if (!this.#items.length && !this.#errors.length) {
      return [head, trouble, blank("worktrees", "No agent works in a git repository", h("p", null, h("code", null, "agtmux launch AGENT --branch B"), " starts one in a worktree of its own."))];
    }
    const repositories = Map.groupBy
      ? Map.groupBy(this.#items, (item) => `${item.target}\n${item.repository}`)
      : grouped(this.#items, (item) => `${item.target}\n${item.repository}`);
    return [
      head,
      trouble,
      this.#errors.map((error) => h("p", { key: `error ${error.target}`, class: "trouble" }, `⊘ ${error.target}: ${error.message}`)),
      [...repositories].map(([key, items]) =>
        h(
          "section",
          { key, class: "repository" },
          h("h2", null, shortPath(items[0].repository), h("span", { class: "aside" }, items[0].target)),
          h("ul", { class: "trees" }, items.map((item) => this.#tree(item))),
        ),
      ),
    ];
  }

  #tree(item) {
    const isOpen = this.#open?.key === keyOf(item);
    const state = item.is_gone ? "gone" : item.is_dirty === null ? "" : item.is_dirty ? "changed" : "clean";
    return h(
      "li",
      { key: keyOf(item), class: "tree" },
      h(
        "div",
        { class: "tree-head" },
        h("span", { class: "branch" }, item.branch ?? item.commit.slice(0, 10)),
        h("span", { class: `tree-state ${state}` }, state),
        h("span", { class: "tree-path", title: item.path }, shortPath(item.path)),
        h(
          "ul",
          { class: "tree-agents", "aria-label": "Agents in it" },
          item.agents.map((agent) =>
            h("li", { key: agent.runtime_id }, h("a", { href: paneHref(agent), class: "chip" }, glyph(this.#board.store.byRuntime(agent.runtime_id)?.state ?? agent.state), agent.name)),
          ),
        ),
        !item.is_gone &&
          h("button", { type: "button", class: "quiet", "aria-expanded": String(isOpen), "aria-label": `Changes: ${item.branch ?? item.path}`, onclick: () => this.#toggle(item) }, "Changes"),
      ),
      isOpen && this.#details(),
    );
  }

  #details() {
    const { diff, trouble, talk } = this.#open;
    if (trouble && !diff) return h("p", { key: "trouble", class: "trouble" }, trouble);
    if (!diff) return h("p", { key: "asking", class: "silence" }, "Asking git …");
    const isEmpty = !diff.diff && !diff.untracked.length;
    const { messages } = talk;
    return h(
      "div",
      { key: "details", class: "tree-details" },
      trouble && h("p", { class: "trouble" }, `Not as it is now: ${trouble}`),
      talk.trouble && h("p", { class: "trouble" }, talk.trouble),
      isEmpty && h("p", { class: "silence" }, "Everything is committed."),
      diff.diff && h("div", { class: "diff", tabindex: "0", role: "group", "aria-label": "Changes", own: (element) => drawDiff(element, diff) }),
      diff.untracked.length > 0 && h("p", { class: "untracked" }, `Not in git: ${diff.untracked.slice(0, 20).join(", ")}${diff.untracked.length > 20 ? " …" : ""}`),
      messages.length > 0 && h("ol", { class: "messages", tabindex: "0", "aria-label": "What was said", own: (element) => messageList(element, messages, this.#board.store.now) }),
    );
  }
}

function drawDiff(element, diff) {
  if (element.agtmuxShown === diff) return;
  element.agtmuxShown = diff;
  const lines = diff.diff.replace(/\n$/, "").split("\n");
  element.replaceChildren(
    ...lines.map((text) => {
      const line = document.createElement("div");
      line.className = KINDS.find(([pattern]) => pattern.test(text))?.[1] ?? "";
      write(line, text || " ");
      return line;
    }),
  );
  if (diff.is_cut) element.append("… it goes on.");
}

function keyOf(item) {
  return `${item.target} ${item.path}`;
}

function grouped(items, by) {
  const groups = new Map();
  for (const item of items) groups.set(by(item), [...(groups.get(by(item)) ?? []), item]);
  return groups;
}
