// What the daemon has said so far. Pure: lines of a watch stream in, panes out.

// Most urgent first.
export const STATES = ["error", "waiting_approval", "waiting_input", "running", "completed", "idle", "unknown"];

const identityOf = ({ target, session_name, window_id, pane_id }) =>
  JSON.stringify([target, session_name, window_id, pane_id]);

export class Store {
  panes = new Map();
  targets = [];
  hasBegun = false;
  cursor = undefined;
  // How far the daemon's clock is ahead of this one.
  ahead = 0;

  /** After a `reset` what was known stands until the next snapshot. */
  take(line) {
    this.cursor = line.type === "reset" ? undefined : line.cursor;
    this.ahead = Date.parse(line.emitted_at) - Date.now();
    if (line.type === "snapshot") {
      this.panes = new Map(line.items.map((item) => [identityOf(item.identity), item]));
      this.hasBegun = true;
    }
    for (const change of line.changes ?? []) {
      if (change.op === "delete") this.panes.delete(identityOf(change.identity));
      else this.panes.set(identityOf(change.identity), change.item);
    }
  }

  get now() {
    return Date.now() + this.ahead;
  }

  /** By who is in it, so that nobody else is ever taken for them. */
  byRuntime(runtimeId) {
    return [...this.panes.values()].find((pane) => pane.runtime_id === runtimeId);
  }

  /** What its target is, once that is known. */
  kindOf(pane) {
    return this.targets.find((target) => target.name === pane.identity.target)?.kind;
  }

  /** Who has waited longest comes first: a new one moves none of the others. */
  waiting() {
    return this.#inState((state) => state.startsWith("waiting_"));
  }

  failed() {
    return this.#inState((state) => state === "error");
  }

  #inState(fits) {
    return [...this.panes.values()]
      .filter((pane) => fits(pane.state))
      .sort((a, b) => a.updated_at.localeCompare(b.updated_at) || a.ref.localeCompare(b.ref));
  }

  counts() {
    const counts = Object.fromEntries(STATES.map((state) => [state, 0]));
    for (const pane of this.panes.values()) counts[pane.state] = (counts[pane.state] ?? 0) + 1;
    return counts;
  }

  /** [{target, sessions: [{name, panes}]}], each where it is, whatever its state. */
  places() {
    const targets = new Map(this.targets.map((target) => [target.name, { target: target.name, about: target }]));
    for (const pane of this.panes.values()) {
      const { target, session_name } = pane.identity;
      if (!targets.has(target)) targets.set(target, { target });
      const place = targets.get(target);
      place.sessions ??= new Map();
      if (!place.sessions.has(session_name)) place.sessions.set(session_name, []);
      place.sessions.get(session_name).push(pane);
    }
    return [...targets.values()].map(({ target, about, sessions }) => ({
      target,
      about,
      sessions: [...(sessions ?? new Map())]
        .sort(([a], [b]) => a.localeCompare(b))
        .map(([name, panes]) => ({ name, panes: panes.sort(byPlace) })),
    }));
  }
}

const number = (id) => Number(id.slice(1)) || 0;

function byPlace(a, b) {
  return (
    number(a.identity.window_id) - number(b.identity.window_id) || number(a.identity.pane_id) - number(b.identity.pane_id)
  );
}
