// What is done to agents. An answer is for the dialog that was shown: it says who was asked and what state that was,
// and the daemon refuses it if anything has moved. Whoever asks twice by accident is answered once.

import { Refusal, ask, nonce, persistently } from "./session.js";
import { attachCommand, nameOf } from "./words.js";

// What a person is told, by the code of the refusal; the daemon's own sentence follows.
const WHY = {
  E_PRECONDITION_FAILED: "Not done: it has moved on, or somebody else has answered.",
  E_RUNTIME_STALE: "Not done: that agent has ended.",
  E_REF_NOT_FOUND: "Not done: that pane is gone.",
  E_DIALOG_OPEN: "Not sent: it asks something first.",
  E_DRAFT_PRESENT: "Not sent: somebody is typing there.",
  E_OFFLINE: "agtmuxd does not answer. Whether it was done is not known: look before you try again.",
  E_DELIVERY_UNCERTAIN: "Whether it was taken is not known: look before you try again.",
};

// Of a text, where that is something else than of an answer.
const WHY_NOT_SENT = { E_PRECONDITION_FAILED: "Not sent: it does something else by now." };

export function explained(error, isText = false) {
  const why = (isText && WHY_NOT_SENT[error.code]) || WHY[error.code];
  const said = error.isSilence ? "" : `${error.message[0].toUpperCase()}${error.message.slice(1)}.`;
  return [why, said].filter(Boolean).join(" ");
}

export function approve(pane) {
  return answered("approve", pane);
}

/** What is not shown whole, once a person has said that all the same. */
export function approvePartly(pane) {
  return answered("approve", pane, { partial: true });
}

export function deny(pane, reason = "") {
  return answered("deny", pane, reason.trim() ? { reason: reason.trim() } : {});
}

function answered(name, pane, more = {}) {
  const shown = { if_state: pane.state, if_state_version: pane.state_version };
  const dialog = pane.attention?.fingerprint ? { if_dialog: pane.attention.fingerprint } : {};
  return done(name, pane, { ...shown, ...dialog, ...more });
}

/** A text may be an answer. So it is for the state that was shown, and where that is a question, for that one. */
export function send(pane, text) {
  const question = pane.state.startsWith("waiting_") ? { if_state_version: pane.state_version } : {};
  return done("send", pane, { text, enter: true, if_state: pane.state, ...question });
}

async function done(name, pane, more) {
  const asked = { request_ref: nonce(), ref: pane.ref, if_runtime: pane.runtime_id, actor: "board", ...more };
  // The same request again is not done again.
  const told = await persistently(() => ask("POST", `/v1/actions/${name}`, asked));
  // Whoever asks again is told what is written down of the first time, also if that was refused.
  if (!told.error_code) return told;
  const result = told.result_code.replaceAll("_", " ");
  throw new Refusal(told.error_code, `the first answer got lost; the log has it as ${result} (${told.error_code})`);
}

export async function copyAttach(pane) {
  const command = attachCommand(pane);
  try {
    await navigator.clipboard.writeText(command);
  } catch {
    // There is no clipboard for a page that came over the network without encryption.
    const field = document.createElement("textarea");
    field.value = command;
    document.body.append(field);
    field.select();
    document.execCommand("copy");
    field.remove();
  }
  return `Copied: the command that takes you to ${nameOf(pane)}.`;
}
