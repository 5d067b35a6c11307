"""From what a pane shows to what its agent is doing: a pure function, the same for a live pane and a saved screen.

What blocks the agent comes first: a list to choose from that has taken the composer's place. Then what says that it
works, then what went wrong, then the prompt. A screen that fits nothing says nothing.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Any, Final

from agtmux.agents.screen.asked import Asked, Heading, asked, told
from agtmux.agents.screen.capture import Capture, read_capture
from agtmux.agents.screen.composer import Composer, is_faint
from agtmux.agents.screen.layout import Layout
from agtmux.agents.screen.options import Choice
from agtmux.agents.screen.rules import ScreenRule, ScreenSheet, Where
from agtmux.domain.states import Confidence, Reason, State

# A pane whose foreground is a shell shows what its agent left behind.
_SHELLS: Final = re.compile(r"-?(?:ba|z|da|a|k|mk|tc|c|fi|nu|pw)?sh|-?(?:nu|xonsh|elvish|login)")
# Programs that show text: what looks like a dialog in them is a saved one, or a quotation.
_VIEWERS: Final = re.compile(
    r"less|more|most|man|bat|batcat|cat|tac|head|tail|watch|delta|git|tig|lazygit|fzf|diff|colordiff|view|vi|vim|nvim"
    r"|vimdiff|nano|pico|emacs|emacsclient|micro|hx|helix|kak|joe|ne|ed|mc|ranger|nnn|lf|top|htop|btop|glow|w3m|lynx"
)
_MOST_TITLE: Final = 600
_LEAST_ABOVE: Final = 3
# Words, or the key that answers for it.
_YES: Final = re.compile(
    r"(?:yes|allow|approve|accept|proceed|run\b|trust|continue|ok\b|apply|always|enable|use\b)|.*\(y\)|\[[ay]\]", re.I
)
# The rest of the list may be cut off by the end of the screen.
_SURELY_YES: Final = re.compile(r"yes\b", re.I)
_NO: Final = re.compile(
    r"(?:no\b|deny|reject|don.t|do not|skip|cancel|exit|decline|stop|quit|keep|modify|edit|tell|continue without)"
    r"|.*\((?:esc|n)\b[^)]*\)$|\[[nq]\]",
    re.I,
)
# A menu of the user's own can be searched or shows what is set, and with a key one is back at the prompt.
_LEAVE: Final = re.compile(r"\besc (?:to )?(?:go )?(?:cancel|back|exit|close|dismiss)\b", re.I)
_GO_BACK: Final = re.compile(r"\besc (?:to )?(?:go )?(?:back|exit|close)\b", re.I)
_SEARCHED: Final = re.compile(r"\btype to (?:search|filter)\b", re.I)
# The field to search in, alone on its line: whatever else a heading has may be the model's own words.
_FIELD: Final = re.compile(r"^(?:(?:type to )?(?:search|filter)(?:…|\.\.\.)?|[⌕🔍] .*)$", re.MULTILINE | re.I)
_IS_SET: Final = re.compile(r"(?<![\[(])[✔✓](?![\])])|\((?:current|active)\)")
# A question takes an answer of one's own. To log in is not a matter of taste either.
_OWN_ANSWER: Final = re.compile(
    r"(?:\[.\] |[•◯○] )?(?:type something|other\b|chat about|enter a custom|(?:none|all) of the above)", re.I
)
_BOX: Final = re.compile(r"\[[ ✓✔xX*]\] ")
# Nor to trust a folder: without either the agent does not start.
_ENTRY: Final = re.compile(r"\b(?:log|sign)[ -]?in\b|\btrust (?:this|the|these)\b", re.I)
# What the keys do in something that lies over the prompt: one of them leads back to it. What they send or insert is at
# the prompt itself.
_COVER: Final = re.compile(
    r"(?:\benter (?!(?:to )?(?:send|submit|insert))\w|\bspace\b|\btab\b|[↑↓])[^()]*"
    r"[·|/,•] ?esc (?:to )?(?:go )?(?:back|exit|close|cancel|dismiss)\b"
    r"|\bq (?:to )?(?:quit|close|exit)\b[^()]*\besc\b",
    re.I,
)
# Help above the prompt, which one can type at.
_HELP: Final = re.compile(r"\? / esc close\b", re.I)
# The top of what the user has opened, where dialogs have another rule: except a plan, and a login.
_PANEL: Final = "▔"
# What a plan's dialog is called or asks, or an option to go on with it.
_PLAN: Final = re.compile(r"ready to (?:code|build)|.*(?:\b(?:a|the|this)|.s) plan\b|.*\bkeep planning|exit plan", re.I)


@dataclass(frozen=True, slots=True)
class Seen:
    """What a screen says."""

    state: State
    reason_code: str
    confidence: Confidence
    evidence: tuple[str, ...] = ()
    asked: Asked | None = None
    # What is typed at the prompt: `empty`, `draft`, `suggestion`; `none` without a prompt.
    composer: str = "none"
    draft: str = ""
    # The state is hidden by something of the user's own, a menu or a viewer: what was known before still holds.
    is_overlay: bool = False


def classify(
    text: str,
    sheet: ScreenSheet,
    *,
    title: str = "",
    command: str = "",
    is_alive: bool | None = None,
    width: int = 0,
) -> Seen:
    """`is_alive` tells whether the agent's process is there, in the foreground of its pane; None if that is not known,
    and then a shell in its place, or what one has written, tells."""
    if is_alive is False:
        return Seen(State.UNKNOWN, "agent_gone", Confidence.HIGH, ("its process has ended",))
    if is_alive is None and _SHELLS.fullmatch(command):
        return Seen(State.UNKNOWN, "agent_gone", Confidence.HIGH, (f"the foreground is {command}",))
    if is_alive is None and _VIEWERS.fullmatch(command):
        return Seen(State.UNKNOWN, "other_program", Confidence.HIGH, (f"the foreground is {command}",))
    capture = read_capture(text, width)
    layout = sheet.layout(capture)
    if layout.is_left_behind and is_alive is None:
        return Seen(State.UNKNOWN, "agent_gone", Confidence.MEDIUM, ("a shell's prompt is below",))
    seen = _read(layout, sheet, title[:_MOST_TITLE].strip())
    is_sure = capture.has_looks and not sheet.is_described
    return seen if is_sure else replace(seen, confidence=seen.confidence.lowered())


def _read(layout: Layout, sheet: ScreenSheet, title: str) -> Seen:
    regions = sheet.regions(layout, title)
    if layout.choice is not None:
        return _chosen(layout, layout.choice, sheet, regions)
    shown: dict[Where, str] = {**regions, "title": ""}
    for stage, with_title in _STAGES:
        found = _first(sheet.rule, regions if with_title else shown, stage)
        if found is not None and "error" in stage and _HELP.search(regions.get("below", "")):
            return Seen(State.UNKNOWN, "overlay", Confidence.MEDIUM, ("help",), is_overlay=True)
        if found is not None:
            return _told(layout, sheet, regions, *found)
        if stage is _OVERLAY and (covered := _cover(sheet, regions)) is not None:
            return covered
        if "running" in stage and sheet.fades_when_busy and _is_faded(layout):
            return Seen(State.RUNNING, "faded_prompt", Confidence.HIGH, _prompt(layout), **_typed(layout, sheet))
    if layout.composer is not None:
        is_hidden = _shows_nothing_above(layout.capture, layout.composer) and not sheet.shows_message(layout)
        confidence = Confidence.LOW if is_hidden or sheet.may_be_writing(regions) else Confidence.HIGH
        return Seen(State.IDLE, "prompt", confidence, _prompt(layout), **_typed(layout, sheet))
    return _nothing()


def _shows_nothing_above(capture: Capture, composer: Composer) -> bool:
    """Whether the pane is so low that how the last turn ended is out of sight."""
    return sum(not line.is_blank for line in capture.lines[: composer.frame]) < _LEAST_ABOVE


def _cover(sheet: ScreenSheet, regions: dict[Where, str]) -> Seen | None:
    """Something of the user's over the prompt, known by its keys; not if the title says that the agent waits."""
    found = _COVER.search(regions.get("below", "").replace("\n", " "))
    title: dict[Where, str] = {"title": regions["title"]}
    if found is None or _first(sheet.rule, title, _WAITING) is not None:
        return None
    return Seen(State.UNKNOWN, "overlay", Confidence.MEDIUM, (found[0],), is_overlay=True)


def _nothing() -> Seen:
    return Seen(State.UNKNOWN, Reason.UNSUPPORTED_SIGNAL, Confidence.LOW, ("nothing is known of this screen",))


_WAITING: Final = frozenset({"waiting_approval", "waiting_input"})
_OVERLAY: Final = frozenset({"overlay"})
# What rules may say, in this order, and whether the title counts. Waiting comes first, as nothing is worse than to miss
# it, but a viewer of the user's hides a dialog that only the title tells of. A prompt that tells of itself comes last.
_STAGES: Final[tuple[tuple[frozenset[str], bool], ...]] = (
    (_WAITING, False),
    (_OVERLAY, False),
    (_WAITING, True),
    (frozenset({"running"}), True),
    (frozenset({"error"}), True),
    (frozenset({"idle"}), True),
)
_KINDS: Final = {"waiting_approval": "approval", "waiting_input": "question", "error": "error"}


def _first(rules: list[ScreenRule], regions: dict[Where, str], says: frozenset[str]) -> tuple[ScreenRule, str] | None:
    for rule in rules:
        if rule.says in says and regions.get(rule.where):
            line = rule.match(regions[rule.where])
            if line is not None:
                return rule, line
    return None


def _told(layout: Layout, sheet: ScreenSheet, regions: dict[Where, str], rule: ScreenRule, line: str) -> Seen:
    if rule.says == "overlay":
        return Seen(State.UNKNOWN, "overlay", Confidence.HIGH, (line,), is_overlay=True)
    kind = rule.kind or _KINDS.get(rule.says)
    wanted = None if kind is None else told(kind, line, regions["live"], layout.above)
    confidence = Confidence.HIGH if rule.is_sure else Confidence.MEDIUM
    if rule.where in ("signed", "coloured") and not layout.capture.has_colours:
        # What the agent says of itself cannot be told from what the model says.
        confidence = Confidence.LOW
    return Seen(State(rule.says), rule.reason_code, confidence, (line,), wanted, **_typed(layout, sheet))


def _chosen(layout: Layout, choice: Choice, sheet: ScreenSheet, regions: dict[Where, str]) -> Seen:
    """What the list wants. Its heading and its options may be the model's words, so whatever takes an answer is asked
    for before a menu's name is looked at. What is at the foot is the agent's own, and holds whatever is above."""
    foot: dict[Where, str] = {"foot": regions["foot"]}
    if (found := _first(sheet.rule, foot, _OVERLAY)) is not None:
        return _told(layout, sheet, regions, *found)
    if _SEARCHED.search(regions["foot"].replace("\n", " ")):
        return Seen(State.UNKNOWN, "overlay", Confidence.MEDIUM, choice.labels[:4], is_overlay=True)
    lists: dict[Where, str] = {where: regions[where] for where in ("heading", "options", "hints")}
    found = _first(sheet.rule, lists, _WAITING)
    heading = Heading.of(layout, choice)
    is_yes_or_no = _SURELY_YES.match(choice.labels[0]) is not None or (
        (_YES.match(choice.labels[0]) or _NO.match(choice.labels[0])) is not None
        and any(_NO.match(label) for label in choice.labels)
    )
    if found is not None:
        state, reason = State(found[0].says), found[0].reason_code
        kind = found[0].kind
    elif is_yes_or_no and not _takes_answer(choice):
        state, reason, kind = State.WAITING_APPROVAL, "dialog", None
    elif not choice.is_marked and not _takes_answer(choice):
        return _nothing()
    elif _takes_answer(choice) and _GO_BACK.search(regions["foot"].replace("\n", " ")) is None:
        state, reason, kind = State.WAITING_INPUT, "question", None
    elif _first(sheet.rule, {"title": regions["title"]}, _WAITING) is not None:
        # Its own title says that it waits, so it has opened the list itself.
        state, reason, kind = State.WAITING_INPUT, "question", None
    elif (menu := _first(sheet.rule, _named(regions), _OVERLAY)) is not None:
        return _told(layout, sheet, regions, *menu)
    elif _is_menu(layout, choice, heading, regions):
        return Seen(State.UNKNOWN, "overlay", Confidence.MEDIUM, choice.labels[:4], is_overlay=True)
    else:
        state, reason, kind = State.WAITING_INPUT, "question", None
    if kind is None:
        kind = "question" if state is State.WAITING_INPUT else "approval"
        if kind == "approval" and any(
            _PLAN.match(text) for text in (*heading.texts[:1], heading.question, *choice.labels)
        ):
            kind = "plan"
    return Seen(
        state, reason, Confidence.HIGH, (heading.question, *choice.labels[:4]), asked(kind, layout, choice, heading)
    )


def _takes_answer(choice: Choice) -> bool:
    """Whether one may answer in words of one's own, or tick more than one."""
    return any(_OWN_ANSWER.match(label) or _BOX.match(label) for label in choice.labels)


def _named(regions: dict[Where, str]) -> dict[Where, str]:
    """Where a menu is known by what it is called: only if a key leads back from it."""
    named: dict[Where, str] = {"hints": regions["hints"]}
    if _LEAVE.search(regions["hints"].replace("\n", " ")) and _ENTRY.search(regions["heading"]) is None:
        named["name"] = regions["name"]
    return named


def _is_menu(layout: Layout, choice: Choice, heading: Heading, regions: dict[Where, str]) -> bool:
    """Whether it is a list that the user has opened, whatever it is called."""
    hints = regions["hints"].replace("\n", " ")
    if layout.capture.lines[choice.top].text.startswith(_PANEL) and _ENTRY.search(regions["heading"]) is None:
        return True
    if _FIELD.search(regions["heading"]) or _SEARCHED.search(hints) or _GO_BACK.search(hints):
        return True
    if _LEAVE.search(hints) is None or _ENTRY.search(regions["heading"]):
        return False
    return not heading.question.endswith("?") or any(_IS_SET.search(label) for label in choice.labels)


def _is_faded(layout: Layout) -> bool:
    """Whether the prompt's own sign is drawn faintly."""
    if layout.composer is None:
        return False
    line = layout.capture.lines[layout.composer.top]
    return is_faint(line.look_at(line.start))


def _typed(layout: Layout, sheet: ScreenSheet) -> dict[str, Any]:
    composer = layout.composer
    if composer is None:
        return {}
    text = sheet.typed(composer.text)
    if not text:
        return {"composer": "empty"}
    return {"composer": "suggestion"} if composer.is_placeholder else {"composer": "draft", "draft": text}


def _prompt(layout: Layout) -> tuple[str, ...]:
    composer = layout.composer
    return (layout.capture.lines[composer.top].text.strip(),) if composer is not None else ()
