// What a view wants to be there, and the least that has to change for it. Text is only ever text: nothing here, or
// anywhere in the board, makes elements of a string.

// What turns the order of letters around, so that a command would read as another one.
const TURNING = /[\u202a-\u202e\u2066-\u2069]/g;

/** As it is written, and not as its writer would have it read. */
export function plain(text) {
  return String(text).replace(TURNING, "\ufffd");
}

// Words of scripts that are written from right to left. Between two of them `>` is drawn as `<`, and what stands before
// it behind it: the command that is read is not the one that is run.
const WORD = "[\\u0590-\\u08ff\\u200f\\ufb1d-\\ufdff\\ufe70-\\ufefc\\u{10800}-\\u{10fff}\\u{1e800}-\\u{1efff}]+";
const HAS_WORD = new RegExp(WORD, "u");
const WORDS = new RegExp(`(${WORD})`, "gu");

/** Each such word for itself, and everything else from left to right, as it is run. */
function inOrder(text) {
  if (!HAS_WORD.test(text)) return [text];
  const pieces = text.split(WORDS).map((piece, number) => (number % 2 ? h("bdi", { dir: "ltr", own: prose(piece) }) : piece));
  return pieces.filter(Boolean);
}

// Attributes that people read.
const READ = ["title", "aria-label"];

/** For what is only text, as in a tooltip: a mark on either side of each word instead of an element. */
function inOrderText(text) {
  return HAS_WORD.test(text) ? text.replace(WORDS, "\u200e$1\u200e") : text;
}

/** Text of people for people, in the direction of its own script. */
export function prose(text) {
  return (element) => {
    if (element.textContent !== plain(text)) element.textContent = plain(text);
  };
}

/** The whole of an element, in order. */
export function write(element, text) {
  patch(element, text);
}

const handlers = new WeakMap();
const keys = new WeakMap();

/** An element as it is wanted. `key` tells it from its neighbours for as long as it lives. */
export function h(tag, props, ...children) {
  return { tag, props: props ?? {}, children: children.flat(Infinity).filter((child) => child || child === 0) };
}

/** Makes the children of an element those that are wanted. What is there already stays, and with it focus and text. */
export function patch(parent, wanted) {
  const wishes = [wanted]
    .flat(Infinity)
    .filter((child) => child || child === 0)
    .flatMap((child) => (typeof child === "object" ? child : inOrder(plain(child))));
  const wantedKeys = new Set(wishes.map((wish) => wish.props?.key).filter((key) => key !== undefined));
  const byKey = new Map();
  for (const node of [...parent.childNodes]) {
    const key = keys.get(node);
    if (key === undefined) continue;
    // First, so that those that stay need not be moved: what is moved loses the focus.
    if (wantedKeys.has(key)) byKey.set(key, node);
    else node.remove();
  }
  let at = parent.firstChild;
  for (const wish of wishes) {
    if (typeof wish !== "object") {
      const text = wish;
      if (at instanceof Text) {
        if (at.data !== text) at.data = text;
        at = at.nextSibling;
      } else {
        parent.insertBefore(document.createTextNode(text), at);
      }
      continue;
    }
    const node = matching(wish, at, byKey) ?? created(wish);
    if (node === at) at = at.nextSibling;
    else parent.insertBefore(node, at);
    update(node, wish);
  }
  while (at) {
    const next = at.nextSibling;
    at.remove();
    at = next;
  }
}

function matching(wish, at, byKey) {
  const { key } = wish.props;
  const node = key === undefined ? at : byKey.get(key);
  const fits = node instanceof Element && node.localName === wish.tag && keys.get(node) === key;
  return fits ? node : null;
}

function created(wish) {
  const node = document.createElement(wish.tag);
  if (wish.props.key !== undefined) keys.set(node, wish.props.key);
  handlers.set(node, {});
  // What somebody types is theirs from then on.
  if (wish.props.value !== undefined) node.value = wish.props.value;
  return node;
}

function update(node, wish) {
  const known = handlers.get(node) ?? {};
  const wanted = new Set();
  for (const [name, value] of Object.entries(wish.props)) {
    if (name === "key" || name === "own" || name === "value") continue;
    if (name.startsWith("on")) {
      const event = name.slice(2);
      if (!(event in known)) node.addEventListener(event, (happened) => handlers.get(node)[event]?.(happened));
      known[event] = value;
    } else if (value !== null && value !== undefined && value !== false) {
      const text = value === true ? "" : READ.includes(name) ? inOrderText(plain(value)) : plain(value);
      wanted.add(name);
      if (node.getAttribute(name) !== text) node.setAttribute(name, text);
    }
  }
  handlers.set(node, known);
  for (const name of node.getAttributeNames()) {
    if (!wanted.has(name) && !(name === "open" && node.localName === "details") && name !== "style") {
      node.removeAttribute(name);
    }
  }
  // An element that draws itself.
  if (wish.props.own) wish.props.own(node);
  else patch(node, wish.children);
}
