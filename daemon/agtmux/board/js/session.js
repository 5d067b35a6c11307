// Who this browser is to the daemon, and requests to it. A session has two halves: a cookie that no script can read,
// and a key that only pages of this origin can.

export const KEY = "agtmux.key";
// A network that changes takes every request with it that is under way, also those to this very machine.
const TRY_AGAIN_AFTER = [300, 1_000];
// Longer than anything takes that the daemon is asked for. A network that swallows everything never says so.
const LONGEST = 45_000;

export class Refusal extends Error {
  constructor(code, message, details = {}, status = 0) {
    super(message);
    this.code = code;
    this.details = details;
    this.status = status;
  }

  /** Whether nobody has answered, so that it is not known what came of it. */
  get isSilence() {
    return this.code === "E_OFFLINE";
  }
}

export const key = () => localStorage.getItem(KEY);

export function forget() {
  localStorage.removeItem(KEY);
}

/** A code or the token, as `agtmux board` gives them, for a session. */
export async function signIn(secret) {
  // A code is good once; under the same name it may be used again, if the answer gets lost.
  const asked = { ...secret, attempt: nonce() };
  const answer = await persistently(() => asking("POST", "/v1/board/login", asked));
  localStorage.setItem(KEY, answer.key);
}

export async function signOut() {
  await ask("POST", "/v1/board/logout", {});
  forget();
}

/** What is only read is asked for again if nobody answers. */
export function ask(method, path, content, limit = LONGEST) {
  const once = () => asking(method, path, content, limit);
  return method === "GET" ? persistently(once) : once();
}

/** For what may be asked twice and done once. */
export async function persistently(once) {
  for (const pause of TRY_AGAIN_AFTER) {
    try {
      return await once();
    } catch (error) {
      if (!error.isSilence) throw error;
      await new Promise((resolve) => setTimeout(resolve, pause));
    }
  }
  return once();
}

/** A name that nobody else comes upon. */
export function nonce() {
  return [...crypto.getRandomValues(new Uint8Array(16))].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}

async function asking(method, path, content, limit = LONGEST) {
  const headers = {};
  if (key()) headers["Agtmux-Key"] = key();
  if (content !== undefined) headers["Content-Type"] = "application/json";
  let answer;
  let told;
  try {
    answer = await fetch(path, {
      method,
      headers,
      body: content === undefined ? undefined : JSON.stringify(content),
      credentials: "same-origin",
      cache: "no-store",
      redirect: "error",
      signal: AbortSignal.timeout(limit),
    });
    told = await answer.json();
  } catch {
    throw new Refusal("E_OFFLINE", "agtmuxd does not answer");
  }
  if (answer.ok) return told;
  const error = told.error ?? {};
  throw new Refusal(error.code ?? "E_INTERNAL", error.message ?? `status ${answer.status}`, error.details, answer.status);
}

export function withQuery(path, query) {
  const pairs = Object.entries(query).filter(([, value]) => value !== undefined && value !== null);
  return pairs.length ? `${path}?${new URLSearchParams(pairs)}` : path;
}
