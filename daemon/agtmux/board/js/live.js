// One WebSocket for the whole page, made again whenever it is lost: after a while that grows, or at once when the page
// is looked at again or the network is back. It is live once something has come over it, and no longer than it answers.

import { Refusal, ask, key } from "./session.js";

const SHORTEST = 500;
const LONGEST = 15_000;
// A socket that was open while the machine slept may be dead without knowing it.
const ASLEEP = 20_000;
// A network that swallows everything ends no connection. So where nothing is heard something is asked for.
const TICK = 5_000;
const QUIET = 9_000;
const PATIENCE = 8_000;

export class Live {
  #socket = null;
  #wishes = new Map();
  #made = 0;
  #pause = SHORTEST;
  #timer = 0;
  #hiddenAt = 0;
  #tick = Date.now();
  #isWanted = false;
  #isLive = false;
  #heardAt = 0;
  #pingedAt = 0;
  // Whatever was begun for an earlier one has nothing to say any more.
  #attempt = 0;

  /** `onStatus` is told {phase: "connecting" | "live" | "lost" | "signed-out", retryAt}. */
  constructor(onStatus) {
    this.onStatus = onStatus;
    addEventListener("online", () => this.tryNow());
    document.addEventListener("visibilitychange", () => this.#seen());
    setInterval(() => this.#ticked(), TICK);
  }

  start() {
    this.#isWanted = true;
    this.#connect();
  }

  stop() {
    this.#isWanted = false;
    this.#drop();
  }

  /** In place of the one of that name. `wish` is a function, so that one that is made again can go on where it was. */
  subscribe(name, wish, onMessage) {
    this.unsubscribe(name);
    // Of its own: what is still on its way for the one before is not for this one.
    const id = `${name} ${(this.#made += 1)}`;
    this.#wishes.set(name, { id, wish, onMessage });
    this.#wishFor(id, wish);
  }

  unsubscribe(name) {
    const known = this.#wishes.get(name);
    if (!known) return;
    this.#wishes.delete(name);
    this.#send({ type: "unsubscribe", id: known.id });
  }

  tryNow() {
    if (!this.#isWanted) return;
    this.#pause = SHORTEST;
    if (this.#socket?.readyState !== WebSocket.OPEN) this.#connect();
  }

  #drop() {
    this.#attempt += 1;
    clearTimeout(this.#timer);
    const socket = this.#socket;
    this.#socket = null;
    this.#isLive = false;
    socket?.close();
  }

  #connect() {
    const wasLive = this.#isLive;
    this.#drop();
    if (wasLive) this.onStatus({ phase: "connecting" });
    const place = new URL("/v1/live", location.href);
    place.protocol = "ws:";
    const socket = new WebSocket(place, ["agtmux.live.v1", `agtmux.key.${key() ?? "none"}`]);
    this.#socket = socket;
    this.#timer = setTimeout(() => this.#lost(), PATIENCE);
    socket.onopen = () => {
      if (this.#socket !== socket) return;
      for (const { id, wish } of this.#wishes.values()) this.#wishFor(id, wish);
    };
    socket.onmessage = (event) => {
      if (this.#socket !== socket) return;
      this.#heard();
      const message = JSON.parse(event.data);
      [...this.#wishes.values()].find(({ id }) => id === message.id)?.onMessage(message);
    };
    socket.onclose = () => {
      if (this.#socket === socket) this.#lost();
    };
  }

  #heard() {
    this.#heardAt = Date.now();
    if (this.#isLive) return;
    clearTimeout(this.#timer);
    this.#pause = SHORTEST;
    this.#isLive = true;
    this.onStatus({ phase: "live" });
  }

  #lost() {
    this.#drop();
    const pause = this.#pause * (0.8 + Math.random() * 0.4);
    this.#pause = Math.min(this.#pause * 2, LONGEST);
    this.#timer = setTimeout(() => this.#again(), pause);
    this.onStatus({ phase: "lost", retryAt: Date.now() + pause });
  }

  /** A WebSocket does not say why it was refused; a request does. */
  async #again() {
    const attempt = this.#attempt;
    try {
      await ask("GET", "/v1/board", undefined, PATIENCE);
    } catch (error) {
      if (attempt !== this.#attempt) return;
      if (error instanceof Refusal && error.status === 401) this.onStatus({ phase: "signed-out" });
      else this.#lost();
      return;
    }
    if (attempt === this.#attempt) this.#connect();
  }

  /** The answer to the second says that whatever happens from then on is told. */
  #wishFor(id, wish) {
    this.#send({ type: "subscribe", id, ...wish() });
    this.#send({ type: "ping", id });
  }

  #send(content) {
    if (this.#socket?.readyState === WebSocket.OPEN) this.#socket.send(JSON.stringify(content));
  }

  #seen() {
    if (document.hidden) {
      this.#hiddenAt = Date.now();
    } else if (this.#socket === null) {
      this.tryNow();
    } else if (Date.now() - this.#hiddenAt > ASLEEP) {
      this.#connect();
    }
  }

  #ticked() {
    const now = Date.now();
    const slept = now - this.#tick > ASLEEP;
    this.#tick = now;
    if (this.#socket === null || !this.#isLive) return;
    if (slept && !document.hidden) {
      this.#connect();
    } else if (this.#pingedAt > this.#heardAt) {
      if (now - this.#pingedAt > PATIENCE) this.#lost();
    } else if (now - this.#heardAt > QUIET) {
      this.#pingedAt = now;
      this.#send({ type: "ping", id: "ping" });
    }
  }
}
