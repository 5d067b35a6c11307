// One agent: what it asks, its screen as it is now, what was said, and a box to say more.

import { explained, send } from "./deeds.js";
import { h } from "./dom.js";
import { age, answers, blank, copy, dialogOf, glyph, isSettled, options, paneHref, question, settle } from "./parts.js";
import { draw as drawScreen } from "./sgr.js";
import { Talk, messageList } from "./talk.js";
import { clockOf, nameOf, placeOf, shortPath, stateOf } from "./words.js";

const SUBSCRIPTION = "pane";
const TRY_AGAIN = 2_000;
// Of a terminal's letter, its width beside its height.
const SLENDER = 0.6;
const LEADING = 1.32;
const SMALLEST = 8.5;
const LARGEST = 13;

export class PaneView {
  #board;
  #runtimeId;
  #screen = null;
  // Whether it was told since it is followed, over the connection that there is.
  #isCurrent = false;
  #trouble = "";
  #talk;
  #retry = 0;
  // Where it was last.
  #ref = null;
  #isFollowed = false;
  #columns = 80;
  #lines = 0;
  #isHere = false;

  constructor(board, runtimeId) {
    this.#board = board;
    this.#runtimeId = runtimeId;
    this.#talk = new Talk({ ref: `runtime:${runtimeId}` }, () => board.draw());
  }

  get title() {
    const pane = this.#pane;
    return pane ? nameOf(pane) : this.#board.store.hasBegun ? "An agent that has ended" : "An agent";
  }

  get #pane() {
    return this.#board.store.byRuntime(this.#runtimeId);
  }

  /** While nobody looks at the page, nothing is captured for it. */
  enter() {
    this.#isHere = true;
    this.changed();
  }

  leave() {
    this.#isHere = false;
    this.#isFollowed = false;
    this.#isCurrent = false;
    clearTimeout(this.#retry);
    this.#board.live.unsubscribe(SUBSCRIPTION);
  }

  connected() {
    this.#isCurrent = false;
  }

  /** Its pane may be known only now. */
  changed() {
    if (this.#isFollowed || !this.#isHere || !this.#pane || document.hidden) return;
    this.#isFollowed = true;
    this.#board.live.subscribe(SUBSCRIPTION, () => ({ pane: `runtime:${this.#runtimeId}` }), (told) => this.#told(told));
  }

  #again() {
    this.#isFollowed = false;
    this.changed();
  }

  #told(told) {
    if (told.type === "screen") {
      // Nobody else's is ever shown for its own.
      if (told.runtime_id !== this.#runtimeId) return;
      this.#screen = told;
      this.#isCurrent = true;
      this.#trouble = "";
    } else if (told.type === "error") {
      this.#trouble = told.error.message;
      clearTimeout(this.#retry);
      // A daemon that has just started may not have seen it yet.
      if (told.error.code === "E_REF_NOT_FOUND") this.#retry = setTimeout(() => this.#again(), TRY_AGAIN);
    } else {
      this.#talk.told(told);
    }
    this.#board.draw();
  }

  draw() {
    const pane = this.#pane;
    if (!pane) return this.#gone();
    this.#ref = pane.ref;
    const isWaiting = pane.state.startsWith("waiting_");
    settle(this.#board, isWaiting ? [pane] : []);
    return [
      h("p", { key: "back", class: "back" }, h("a", { href: "#/" }, "‹ Agents")),
      h(
        "div",
        { key: "head", class: "pane-head" },
        h("h1", null, glyph(pane.state), nameOf(pane)),
        h(
          "dl",
          { class: "facts" },
          fact("State", stateOf(pane), " · ", age(this.#board, pane)),
          fact("Pane", placeOf(pane)),
          pane.branch && fact("Branch", pane.branch),
          pane.cwd && fact("Folder", h("span", { title: pane.cwd }, shortPath(pane.cwd))),
        ),
        h("div", { class: "deeds" }, copy(this.#board, pane)),
      ),
      (isWaiting || pane.state === "error") && this.#attention(pane),
      h(
        "div",
        { key: "halves", class: "halves" },
        this.#screenPart(pane),
        h("section", { class: "talk", "aria-labelledby": "talk-title" }, h("h2", { id: "talk-title" }, "Conversation"), this.#conversation(), this.#box(pane)),
      ),
    ];
  }

  #attention(pane) {
    const isApproval = pane.state === "waiting_approval";
    const reason = () => document.getElementById("reason")?.value ?? "";
    return h(
      "section",
      { key: "attention", class: `card ${pane.state}`, "aria-label": "What it asks" },
      question(pane),
      pane.attention?.options?.length > 0 && options(pane.attention),
      isApproval &&
        h(
          "div",
          { class: "deeds" },
          answers(this.#board, pane, reason),
          h("label", { key: `why ${dialogOf(pane)}`, class: "reason" }, h("span", { class: "unseen" }, "Why not"), h("input", { id: "reason", type: "text", placeholder: "Why not (told with Deny)", autocomplete: "off", maxlength: "2000" })),
        ),
      pane.state === "waiting_input" && h("p", { class: "hint" }, this.#howToAnswer(pane)),
    );
  }

  /** A session has no dialog that keys could reach: it takes a text for the answer. */
  #howToAnswer(pane) {
    const isChat = this.#board.store.kindOf(pane) === "chat";
    return isChat ? "Write the answer below, and send it." : "It is answered in its pane: copy the attach command.";
  }

  #howToWrite(pane) {
    if (!pane.state.startsWith("waiting_")) return "Typed at its prompt, as if you were there";
    const isAnswer = pane.state === "waiting_input" && this.#board.store.kindOf(pane) === "chat";
    return isAnswer ? "Your answer" : "Not taken while it asks something: answer that first";
  }

  #screenPart(pane) {
    const isOld = !this.#board.isLive || (this.#screen && !this.#isCurrent) || this.#trouble;
    return h(
      "section",
      { class: "screen-part", "aria-labelledby": "screen-title" },
      h(
        "h2",
        { id: "screen-title" },
        "Screen",
        h("span", { class: "aside" }, this.#trouble || (this.#screen ? (isOld ? `as of ${clockOf(this.#screen.at, this.#board.store.now)}` : "live") : "…")),
      ),
      h("div", {
        class: isOld ? "screen old" : "screen",
        role: "group",
        tabindex: "0",
        "aria-label": `Screen of ${nameOf(pane)}`,
        own: (element) => this.#drawScreen(element),
      }),
    );
  }

  #drawScreen(element) {
    if (this.#screen && element.agtmuxShown !== this.#screen) {
      element.agtmuxShown = this.#screen;
      this.#columns = Math.max(40, drawScreen(element, this.#screen.output));
      // It never shrinks, so that what is below stays where it is.
      this.#lines = Math.max(this.#lines, element.children.length);
      element.style.minHeight = `${this.#lines * LEADING + 2}em`;
    }
    // As large as it fits, and never too small to be read.
    const size = Math.min(LARGEST, Math.max(SMALLEST, (element.clientWidth - 26) / (this.#columns * SLENDER)));
    element.style.fontSize = `${Math.round(size * 10) / 10}px`;
  }

  #conversation() {
    const { messages, trouble, isAsked } = this.#talk;
    return [
      trouble && h("p", { key: "trouble", class: "trouble" }, trouble),
      messages.length > 0
        ? h("ol", { key: "messages", class: "messages", tabindex: "0", "aria-label": "What was said", own: (element) => this.#drawMessages(element) })
        : !trouble && h("p", { key: "silence", class: "silence" }, isAsked ? "There is no conversation yet." : "…"),
    ];
  }

  #drawMessages(element) {
    const isAtEnd = element.scrollHeight - element.scrollTop - element.clientHeight < 40;
    messageList(element, this.#talk.messages, this.#board.store.now);
    if (isAtEnd || !element.agtmuxSeen) element.scrollTop = element.scrollHeight;
    element.agtmuxSeen = true;
  }

  #box(pane) {
    const sent = this.#board.sent.get(this.#runtimeId);
    const isOff = !this.#board.isLive || sent?.isUnderWay;
    return h(
      "form",
      {
        key: "box",
        class: "box",
        onsubmit: (event) => {
          event.preventDefault();
          this.#send(pane, event.target.elements.text.value.trim());
        },
      },
      h("label", { for: "text" }, `Message to ${nameOf(pane)}`),
      h("textarea", {
        id: "text",
        name: "text",
        rows: "3",
        "data-to": this.#runtimeId,
        placeholder: this.#howToWrite(pane),
        value: this.#board.drafts.get(this.#runtimeId) ?? "",
        oninput: (event) => this.#board.drafts.set(this.#runtimeId, event.target.value),
        onkeydown: (event) => {
          if (event.key === "Enter" && (event.ctrlKey || event.metaKey) && !event.repeat) event.target.form.requestSubmit();
        },
      }),
      h("div", { class: "box-end" }, h("p", { class: "said", role: "status" }, sent?.said), h("button", { type: "submit", class: "send", disabled: isOff }, "Send")),
    );
  }

  async #send(pane, text) {
    const board = this.#board;
    const to = this.#runtimeId;
    if (!text || board.sent.get(to)?.isUnderWay || (pane.state === "waiting_input" && !isSettled(board))) return;
    const tell = (said, isUnderWay = false) => {
      board.sent.set(to, { said, isUnderWay });
      board.draw();
    };
    tell("Sending …", true);
    try {
      const done = await send(pane, text);
      tell(done.result_code === "delivered" ? "Delivered." : `It was typed: ${done.result_code.replaceAll("_", " ")}.`);
      if (board.drafts.get(to)?.trim() === text) board.drafts.delete(to);
      // The box of this agent that is there by now.
      const field = document.querySelector(`#text[data-to="${CSS.escape(to)}"]`);
      if (field?.value.trim() === text) field.value = "";
    } catch (error) {
      tell(explained(error, true));
    }
  }

  #gone() {
    if (!this.#board.store.hasBegun) return blank("asking", "Asking agtmuxd");
    // A chat session is another one to every daemon, and a pane may have somebody else in it.
    const next = this.#ref && [...this.#board.store.panes.values()].find((pane) => pane.ref === this.#ref);
    const who = next
      ? ["In its place is now ", h("a", { key: "next", href: paneHref(next) }, nameOf(next)), "."]
      : "Whoever is in its pane by now is somebody else.";
    return [
      h("p", { key: "back", class: "back" }, h("a", { href: "#/" }, "‹ Agents")),
      blank("down", "That agent has ended", h("p", { key: "who" }, who)),
    ];
  }
}

function fact(name, ...value) {
  return h("div", { key: name }, h("dt", null, name), h("dd", null, value));
}
