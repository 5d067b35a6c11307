// What was said, by one agent or in one work tree: each once and in its order, also if the connection was away meanwhile.

import { plain } from "./dom.js";
import { ask, withQuery } from "./session.js";
import { clockOf } from "./words.js";

const FIRST = 50;
const MOST = 400;

export class Talk {
  messages = [];
  trouble = "";
  isAsked = false;
  #about;
  #onChange;
  // Up to here nothing is missing; what is heard moves it only while nothing can have been missed.
  #known = undefined;
  #isWhole = false;
  #asked = 0;
  // What was told since it was last asked for: the answer may have been written before that.
  #heard = [];

  /** `about` says whose, in the words of /v1/conversations/messages. */
  constructor(about, onChange) {
    this.#about = about;
    this.#onChange = onChange;
  }

  /** What a subscription tells. */
  told(told) {
    if (told.type === "pong" || told.type === "missed") {
      this.catchUp();
    } else if (told.type === "message") {
      const { conversation_id, seq } = told.message;
      // Another one may stand in place of what was known so far: of what was read off the screen, say.
      const isOther = this.messages.length > 0 && !this.messages.some((each) => each.conversation_id === conversation_id);
      this.#add([told.message]);
      if (!this.#isWhole) this.#heard.push(told.message);
      if (isOther) this.#known = undefined;
      else if (this.#isWhole) this.#known = Math.max(this.#known ?? 0, seq);
      if (isOther || (!this.#isWhole && this.trouble)) this.catchUp();
      this.#onChange();
    }
  }

  /** Until all that was missed is here, what is heard may have something before it. */
  async catchUp() {
    const asked = (this.#asked += 1);
    this.#isWhole = false;
    this.#heard = [];
    try {
      // The last one again: it may have been told half.
      let items = this.#known && (await this.#ask({ after: this.#known - 1, limit: MOST }));
      // Too much was missed to be shown: the list begins anew, as one with a hole would look whole.
      const isAnew = !items;
      items ||= await this.#ask({ limit: FIRST });
      if (asked !== this.#asked) return;
      if (isAnew) this.messages = this.messages.filter((message) => message.seq > (items.at(-1)?.seq ?? 0));
      const ids = new Set(items.map((message) => message.message_id));
      this.#add([...items, ...this.#heard.filter((message) => ids.has(message.message_id))]);
      this.#known = this.messages.at(-1)?.seq;
      this.#isWhole = true;
      this.trouble = "";
    } catch (error) {
      if (asked !== this.#asked) return;
      this.trouble = error.message;
    }
    this.isAsked = true;
    this.#onChange();
  }

  /** None if there is more after them. */
  async #ask(query) {
    const answer = await ask("GET", withQuery("/v1/conversations/messages", { ...this.#about, ...query }));
    return query.after !== undefined && answer.has_more ? null : answer.items;
  }

  #add(messages) {
    // An answer may be told before it is whole, and again when it is: the higher seq is the later, and else the last told.
    const all = [...this.messages, ...messages].sort(bySeq);
    const known = new Map(all.map((message) => [message.message_id, message]));
    this.messages = [...known.values()].sort(bySeq).slice(-MOST);
  }
}

const bySeq = (a, b) => a.seq - b.seq;

/** Messages as a list; content is text, whatever it looks like. */
export function messageList(element, messages, now) {
  const known = new Map([...element.children].map((item) => [item.dataset.message, item]));
  const wanted = new Set(messages.map((message) => String(message.message_id)));
  for (const item of known.values()) if (!wanted.has(item.dataset.message)) item.remove();
  let at = element.firstElementChild;
  for (const message of messages) {
    const item = known.get(String(message.message_id)) ?? newItem(message, now);
    const text = plain(message.is_cut ? `${message.content} …` : message.content);
    if (item.lastElementChild.textContent !== text) item.lastElementChild.textContent = text;
    if (item === at) at = at.nextElementSibling;
    else element.insertBefore(item, at);
  }
}

function newItem(message, now) {
  const item = document.createElement("li");
  item.className = message.role === "user" ? "user" : "assistant";
  item.dataset.message = message.message_id;
  const head = document.createElement("p");
  head.className = "message-head";
  head.textContent = `${message.role === "user" ? "You" : message.agent_type} · ${clockOf(message.at, now)}`;
  const content = document.createElement("p");
  content.className = "message-text";
  item.append(head, content);
  return item;
}
