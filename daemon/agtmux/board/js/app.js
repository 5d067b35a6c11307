// The board: which view is shown, how the connection is, and what happened. Views draw; this decides when.

import { h, patch, plain } from "./dom.js";
import { Live } from "./live.js";
import { LogView } from "./log.js";
import * as overview from "./overview.js";
import { PaneView } from "./pane.js";
import { blank, shape } from "./parts.js";
import { KEY, ask, forget, key, signIn, signOut } from "./session.js";
import { Store } from "./store.js";
import { decoded, nameOf, questionOf, stateOf } from "./words.js";
import { WorktreesView } from "./worktrees.js";

const NOTE_LASTS = { calm: 5_000, trouble: 12_000 };
const TARGETS_EVERY = 30_000;
const AGES_EVERY = 10_000;
const main = document.getElementById("main");

class Overview {
  title = overview.title;

  constructor(board) {
    this.board = board;
  }

  enter() {}
  leave() {}
  connected() {}

  draw() {
    return overview.draw(this.board);
  }
}

class Board {
  store = new Store();
  status = { phase: "connecting" };
  drafts = new Map();
  // What became of the last message, by whom it is to; also if its view was left meanwhile.
  sent = new Map();
  settledAt = 0;
  order = undefined;
  // Dialogs that are not shown whole, and that a person has asked to approve all the same.
  reviewed = new Set();
  #busy = new Set();
  #view = new Overview(this);
  #drawing = 0;
  #notes = [];
  #signInTrouble = "";
  #announced = null;

  constructor() {
    this.live = new Live((status) => this.#linked(status));
  }

  async start() {
    addEventListener("hashchange", () => this.#moved());
    document.addEventListener("keydown", (event) => this.#pressed(event));
    document.getElementById("skip").addEventListener("click", (event) => {
      event.preventDefault();
      main.focus();
    });
    document.addEventListener("visibilitychange", () => this.#looked());
    addEventListener("storage", (event) => this.#signedElsewhere(event));
    document.getElementById("more").addEventListener("click", () => this.#showKeys());
    for (const tab of document.querySelectorAll("#nav a")) shape(tab.dataset.view)(tab.querySelector(".tab-sign"));
    addEventListener("resize", () => this.draw());
    setInterval(() => !document.hidden && this.draw(), AGES_EVERY);
    setInterval(() => !document.hidden && this.isLive && this.#askTargets(), TARGETS_EVERY);
    const code = takenCode();
    if (code !== null) {
      await this.#enterWith({ code });
    } else if (key()) {
      this.#begin();
    } else {
      this.#linked({ phase: "signed-out" });
    }
    this.#route();
  }

  get isLive() {
    return this.status.phase === "live";
  }

  isBusy(pane) {
    return this.#busy.has(pane.runtime_id);
  }

  setBusy(pane, isBusy) {
    if (isBusy) this.#busy.add(pane.runtime_id);
    else this.#busy.delete(pane.runtime_id);
    this.draw();
  }

  /** A line at the edge of the page, for a while. */
  tell(text, kind = "calm") {
    const note = { text, kind, id: Math.random() };
    this.#notes = [...this.#notes.slice(-2), note];
    setTimeout(() => {
      this.#notes = this.#notes.filter((each) => each !== note);
      this.draw();
    }, NOTE_LASTS[kind]);
    this.draw();
  }

  /** Soon, and once for all that happens until then. */
  draw() {
    this.#drawing ||= setTimeout(() => {
      this.#drawing = 0;
      this.#drawNow();
    });
  }

  #begin() {
    this.live.subscribe("panes", () => ({ scope: "panes", cursor: this.store.cursor }), (told) => this.#told(told));
    this.live.start();
  }

  /** At the page, or away from it. */
  #looked() {
    if (document.hidden) this.#view.leave();
    else this.#view.enter();
    this.draw();
  }

  #told(told) {
    if (told.type === "line") {
      const knew = this.store.hasBegun;
      this.store.take(told.line);
      if (!knew && this.store.hasBegun) this.#view.enter();
      this.#view.changed?.();
      if (told.line.changes?.some(({ item }) => item && !this.store.kindOf(item))) this.#askTargets();
    } else if (told.type === "error" && told.error.code.startsWith("E_CURSOR")) {
      this.store.cursor = undefined;
      this.#begin();
    }
    this.draw();
  }

  #linked(status) {
    const was = this.status.phase;
    this.status = status;
    if (status.phase === "signed-out") this.live.stop();
    this.draw();
    if (status.phase !== "live" || was === "live") return;
    this.#view.connected();
    this.#askTargets();
  }

  async #askTargets() {
    try {
      this.store.targets = (await ask("GET", "/v1/targets")).items;
      this.draw();
    } catch {
      // It is tried again soon, and the connection says by itself that it is lost.
    }
  }

  async #enterWith(secret) {
    try {
      await signIn(secret);
      this.#signInTrouble = "";
      this.status = { phase: "connecting" };
      this.#begin();
    } catch (error) {
      this.#signInTrouble = error.message;
      // A code that comes too late does not end a session that there is.
      if (key() && "code" in secret) this.#begin();
      else this.#linked({ phase: "signed-out" });
    }
    this.draw();
  }

  /** In another window of the same browser. */
  #signedElsewhere(event) {
    if (event.storageArea !== localStorage || (event.key !== null && event.key !== KEY)) return;
    const isOut = this.status.phase === "signed-out";
    if (!key()) {
      this.#linked({ phase: "signed-out" });
    } else if (isOut) {
      this.status = { phase: "connecting" };
      this.#begin();
    }
  }

  /** To another view, or with a new code, as a link that is pasted into an open page brings it. */
  async #moved() {
    const code = takenCode();
    if (code !== null) await this.#enterWith({ code });
    this.#route();
  }

  #route() {
    const [, name, argument] = location.hash.slice(1).split("/");
    this.#view.leave();
    if (name === "pane" && argument) this.#view = new PaneView(this, decoded(argument));
    else if (name === "worktrees") this.#view = new WorktreesView(this);
    else if (name === "log") this.#view = new LogView(this);
    else this.#view = new Overview(this);
    this.order = undefined;
    if (this.status.phase !== "signed-out") this.#view.enter();
    main.replaceChildren();
    this.#drawNow();
    scrollTo(0, 0);
  }

  #drawNow() {
    const isOut = this.status.phase === "signed-out";
    const waiting = this.store.waiting().length;
    const isKnown = this.isLive && this.store.hasBegun;
    document.title = `${isKnown && waiting ? `(${waiting}) ` : ""}${isOut ? "Sign in" : this.#view.title} · agtmux`;
    const icon = !isKnown ? "down" : waiting ? "waiting" : this.store.counts().running ? "running" : "idle";
    const link = document.getElementById("icon");
    if (!link.href.endsWith(`/board-${icon}-32.png`)) link.href = `/icons/board-${icon}-32.png`;
    document.body.classList.toggle("old", !this.isLive && this.store.hasBegun);
    for (const tab of document.querySelectorAll("#nav a")) {
      const isHere = tab.dataset.view === (location.hash.split("/")[1] || "overview");
      if (isHere) tab.setAttribute("aria-current", "page");
      else tab.removeAttribute("aria-current");
    }
    if (isKnown) this.#announce();
    patch(main, isOut ? this.#signInPage() : this.#view.draw());
    patch(document.getElementById("link"), this.#linkState());
    patch(
      document.getElementById("notes"),
      this.#notes.map((note) => h("p", { key: note.id, class: `note ${note.kind}` }, note.text)),
    );
  }

  /** For who cannot see that somebody has come to wait. */
  #announce() {
    const waiting = this.store.waiting();
    const nameOne = (pane) => `${pane.runtime_id} ${pane.state_version}`;
    const fresh = this.#announced ? waiting.filter((pane) => !this.#announced.has(nameOne(pane))) : [];
    this.#announced = new Set(waiting.map(nameOne));
    if (!fresh.length) return;
    const words = fresh.map((pane) => `${nameOf(pane)}, ${stateOf(pane)}: ${questionOf(pane)}`);
    document.getElementById("heard").textContent = plain(words.join(". "));
  }

  #linkState() {
    const { phase } = this.status;
    if (phase === "live") return h("span", { key: phase, class: "on" }, "live");
    if (phase === "connecting") return h("span", { key: phase, class: "off" }, "connecting …");
    if (phase === "signed-out") return h("span", { key: phase, class: "off" }, "signed out");
    return [
      h("span", { key: phase, class: "off" }, "not connected", this.store.hasBegun && h("i", null, "; this is what was")),
      h("button", { key: "again", type: "button", class: "quiet", onclick: () => this.live.tryNow() }, "Try now"),
    ];
  }

  #signInPage() {
    return blank(
      "key",
      "This browser is not signed in",
      h("p", { key: "how" }, "Run ", h("code", null, "agtmux board"), " in a terminal. It opens this page with a code that works once."),
      h(
        "form",
        {
          key: "form",
          class: "sign-in",
          onsubmit: (event) => {
            event.preventDefault();
            const { value } = event.target.elements.secret;
            const code = /[#&]code=([^&]+)/.exec(value)?.[1];
            this.#enterWith(code ? { code } : { token: value.trim() });
            event.target.reset();
          },
        },
        h("label", { for: "secret" }, "Or the address that ", h("code", null, "agtmux board --no-open"), " prints, or the token"),
        h("input", { id: "secret", name: "secret", type: "password", autocomplete: "off", required: true }),
        h("button", { type: "submit", class: "send" }, "Sign in"),
        h("p", { class: "trouble", role: "alert" }, this.#signInTrouble),
      ),
    );
  }

  #pressed(event) {
    // An input method's keys are its own, and so are those of a window in front.
    if (event.isComposing || document.querySelector("dialog[open]")) return;
    const isTyping = event.target.matches("input, textarea, select");
    // Held, a key goes on from agent to agent. Whatever else it does, it does once: nobody has looked at what comes next.
    const isHeld = event.repeat && !["j", "k"].includes(event.key);
    if (event.key === "Escape") {
      if (isHeld) return;
      if (isTyping) event.target.blur();
      else if (location.hash.startsWith("#/pane/")) location.hash = "#/";
      return;
    }
    if (isTyping || event.ctrlKey || event.metaKey || event.altKey) return;
    const deed = {
      j: () => move(1),
      k: () => move(-1),
      a: () => inCard(event, ".approve"),
      d: () => inCard(event, ".deny"),
      m: () => document.getElementById("text")?.focus(),
      1: () => (location.hash = "#/"),
      2: () => (location.hash = "#/worktrees"),
      3: () => (location.hash = "#/log"),
      "?": () => this.#showKeys(),
    }[event.key];
    if (deed) {
      event.preventDefault();
      if (!isHeld) deed();
    }
  }

  #showKeys() {
    const dialog = document.getElementById("keys");
    const rows = [
      ["j, k", "next and previous agent"],
      ["Enter", "open it"],
      ["a, d", "approve or deny, if the focus is on who asks"],
      ["m", "write a message"],
      ["Esc", "back"],
      ["1, 2, 3", "agents, worktrees, log"],
    ];
    patch(dialog, [
      h("h2", { id: "keys-title" }, "Keys"),
      h("dl", { class: "key-list" }, rows.map(([name, does]) => h("div", { key: name }, h("dt", null, name), h("dd", null, does)))),
      h(
        "div",
        { class: "deeds" },
        key() && h("button", { type: "button", class: "quiet", onclick: () => this.#leave(dialog) }, "Sign this browser out"),
        h("button", { type: "button", class: "send", autofocus: true, onclick: () => dialog.close() }, "Close"),
      ),
    ]);
    dialog.showModal();
  }

  async #leave(dialog) {
    dialog.close();
    await signOut().catch(forget);
    this.#linked({ phase: "signed-out" });
  }
}

/** The code behind the #, once: then it is worth nothing any more, and need not stay in the history either. */
function takenCode() {
  const code = new URLSearchParams(location.hash.slice(1)).get("code");
  if (code !== null) history.replaceState(null, "", "#/");
  return code;
}

function move(by) {
  const stops = [...document.querySelectorAll("[data-stop]")];
  const at = stops.indexOf(document.activeElement);
  const next = at < 0 ? (by > 0 ? 0 : stops.length - 1) : Math.min(Math.max(at + by, 0), stops.length - 1);
  stops[next]?.focus();
}

/** Only if that is where somebody looks: no key answers for an agent that happens to be first. */
function inCard(event, button) {
  event.target.closest?.(".card")?.querySelector(button)?.click();
}

new Board().start();
