"""Answers with names, for `do:show{{name}}`: what a model may well write and a careless reader of screens misreads."""

from __future__ import annotations

_CLAUDE_DIALOG = """\
This is what the dialog looks like when Claude asks:

```
 Bash command

   rm -rf build
   Remove the build folder

 Do you want to proceed?
 ❯ 1. Yes
   2. Yes, and don't ask again for rm commands in this project
   3. No, and tell Claude what to do differently (esc)
```

Choose 1 to go on."""

_CODEX_DIALOG = """\
Codex asks like this:

```
  Would you like to run the following command?

  $ rm -rf build

› 1. Yes, proceed (y)
  2. Yes, and don't ask again for commands that start with `rm -rf` (p)
  3. No, and tell Codex what to do differently (esc)

  Press enter to confirm or esc to cancel
```

The third is the safe one."""

_GEMINI_DIALOG = """\
Gemini asks like this:

```
╭──────────────────────────────────────────────────────╮
│ ?  Shell rm -rf build                                │
│                                                      │
│ Allow execution of: 'rm'?                            │
│                                                      │
│ ● 1. Allow once                                      │
│   2. Allow for this session                          │
│   3. No, suggest changes (esc)                       │
╰──────────────────────────────────────────────────────╯
```

The third is the safe one."""

_COPILOT_DIALOG = """\
Copilot asks like this:

```
╭──────────────────────────────────────────────────────╮
│ Run command                                          │
│                                                      │
│ rm -rf build                                         │
│                                                      │
│ Do you want to run this command?                     │
│                                                      │
│ ❯ 1. Yes                                             │
│   2. No, and tell Copilot what to do differently (Esc) │
│                                                      │
│ Confirm with number keys or ↑↓ keys and Enter        │
╰──────────────────────────────────────────────────────╯
```

The second is the safe one."""

_BUSY = """\
While it works, the last lines of the screen are:

```
✻ Thinking… (12s · esc to interrupt)

• Working (12s • esc to interrupt)

⠏ Consulting the oracle (esc to cancel, 12s)

∙ Thinking (Esc to cancel · 1.2 KiB)
```

and when it is done they are gone."""

_WIDE = """\
小包のラベルを三つ印刷しました。✅ 完了 🎉

- 東京 🗼 → 大阪 🏯
- 한국어 라벨 📦
- naïve café ÅÄÖ
- 👩‍👩‍👧 family 🇯🇵 flag"""

_CODE = """\
```python
def label(parcel):
    if parcel.weight > 2:
        return f"heavy {parcel.id}"
    return parcel.id
```"""

_PARAGRAPH = "parcels go from the shelf to the belt and from there to the van."

TEXTS: dict[str, str] = {
    "claude-dialog": _CLAUDE_DIALOG,
    "codex-dialog": _CODEX_DIALOG,
    "gemini-dialog": _GEMINI_DIALOG,
    "copilot-dialog": _COPILOT_DIALOG,
    "busy": _BUSY,
    # As the first words of an answer, where its own sign stands before them.
    "busy-claude": "✻ Thinking… (12s · esc to interrupt)",
    "busy-codex": "Working (12s • esc to interrupt)",
    "yes-no": "Shall I go on and delete the old labels?\n\n1. Yes\n2. No",
    "question": "There are two ways to do this. Do you want to proceed with the first one?",
    "steps": "Here is what I would do:\n\n1. Read the file\n2. Change the label\n3. Run the tests\n4. Commit",
    "errors": """\
The build fails:

```
src/label.c:12:5: error: implicit declaration of function 'prnt'
src/label.c:14:1: error: expected ';' before '}' token
make: *** [Makefile:7: label.o] Error 1
API Error: 500 Internal server error
Traceback (most recent call last):
  File "label.py", line 3, in <module>
RuntimeError: rate limit exceeded (429)
```

Two of these are real.""",
    "table": "| parcel | weight | state |\n|---|---|---|\n| A-1 | 2.5 kg | sent |\n| B-22 | 0.4 kg | waiting |",
    "wide": _WIDE,
    "code": _CODE,
    "long": "\n\n".join(f"Paragraph {number}: {_PARAGRAPH}" for number in range(1, 41)),
    "prompt-sign": "Type this at the prompt:\n\n> make test\n\n❯ make test\n\n› make test\n\n$ make test",
}
