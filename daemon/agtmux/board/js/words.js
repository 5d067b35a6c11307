// How things are called: agents, places, ages. Short, and of one line.

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

export function nameOf(pane) {
  return pane.name || pane.agent_type;
}

export function placeOf(pane) {
  const { target, session_name, pane_id } = pane.identity;
  return `${target} / ${session_name} ${pane_id}`;
}

export function questionOf(pane) {
  return pane.attention?.summary || pane.title || "";
}

export function stateOf(pane) {
  const words = pane.state.replace("_", " for ");
  return pane.state === "unknown" || pane.reason_code === "interrupted"
    ? `${words} (${pane.reason_code.replaceAll("_", " ")})`
    : words;
}

export function ageOf(milliseconds) {
  if (milliseconds < MINUTE) return "now";
  if (milliseconds < HOUR) return `${Math.floor(milliseconds / MINUTE)} m`;
  if (milliseconds < DAY) return `${Math.floor(milliseconds / HOUR)} h`;
  return `${Math.floor(milliseconds / DAY)} d`;
}

export function clockOf(moment, now) {
  const at = new Date(moment);
  const time = at.toLocaleTimeString([], { hour: "2-digit", minute: "2-digit", second: "2-digit" });
  return now - at < DAY / 2 ? time : `${at.toLocaleDateString([], { month: "short", day: "numeric" })}, ${time}`;
}

/** agtmux's own command, which looks again when it is used. */
export function attachCommand(pane) {
  return ["agtmux", "attach", pane.ref, "--if-runtime", pane.runtime_id].map(quoted).join(" ");
}

function quoted(word) {
  return /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`;
}

export function shortPath(path) {
  return path.replace(/^\/(?:home|Users)\/[^/]+(?=\/|$)/, "~");
}

/** What was written for an address, or as it stands if it was not. */
export function decoded(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
