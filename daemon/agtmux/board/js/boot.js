// Loads the rest, or the whole page again: a network that changes meanwhile takes with it what is on its way, and a page
// of which a part is missing would wait for ever. What stands behind the # stays, and with it a code that was not used.

const PAUSES = [200, 500, 1_000, 3_000, 10_000, 30_000];
const TRIES = "agtmux.tries";

async function again() {
  const tries = Number(sessionStorage.getItem(TRIES)) || 0;
  // By then it is no accident, and the page says how to go on.
  if (tries >= PAUSES.length) return;
  sessionStorage.setItem(TRIES, tries + 1);
  await new Promise((resolve) => setTimeout(resolve, PAUSES[tries]));
  try {
    // While nobody answers, this page says more than what a browser would show instead.
    await fetch("/", { cache: "no-store" });
  } catch {
    return again();
  }
  location.reload();
}

try {
  if (!getComputedStyle(document.documentElement).getPropertyValue("--ink")) throw new Error("the style is missing");
  await import("./app.js");
  sessionStorage.removeItem(TRIES);
} catch (error) {
  console.warn(error);
  again();
}
