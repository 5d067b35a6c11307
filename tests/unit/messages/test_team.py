"""A team's file, and when a task in it takes too long."""

import asyncio
import contextlib
import tomllib
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import cast

import pytest

from agtmux.agents.registry import Registry
from agtmux.config import Config
from agtmux.domain.durations import SECOND, parse_duration
from agtmux.domain.errors import AgtmuxError, ErrorCode
from agtmux.domain.limits import MailLimits
from agtmux.domain.mail import Message, MessageType, Party, Priority, Reason, Status
from agtmux.domain.panes import HOST
from agtmux.domain.runtimes import PaneId
from agtmux.domain.timestamps import Timestamp
from agtmux.messages.directory import Directory, Role
from agtmux.messages.gate import Gate
from agtmux.messages.letters import Letter, message_of
from agtmux.messages.mailbox import Mailbox, Wanted
from agtmux.messages.policy import Policy as MailPolicy
from agtmux.messages.post import LONGEST_FETCH, LONGEST_SEND, Post
from agtmux.messages.postman import Postman
from agtmux.messages.team import TeamSheet, Timeouts, read_sheet
from agtmux.messages.teams import Task, Teams, overdue
from agtmux.observe import supervisor as supervisor_module
from agtmux.observe.supervisor import Supervisor
from agtmux.worktrees.teaming import order_of
from unit.builders import PANE, FakeTime, a_core, a_pane, an_event, seen

TEAM = {
    "name": "review",
    "folder": "/work",
    "roles": {
        "lead": {"agent": "claude", "prompt": "Divide the work.", "user": True},
        "writer": {"agent": "codex", "peers": ["lead"]},
        "reader": {"agent": "gemini", "peers": []},
    },
}


def test_who_writes_to_whom():
    team = read_sheet(TEAM)
    assert team.role("lead").peers == ("writer", "reader", "user")
    assert team.role("writer").peers == ("lead",)
    assert team.role("reader").peers == ()


def test_a_member_is_told_who_it_is_and_whom_it_works_with():
    """orchestrator: starting, word to the user."""
    team = read_sheet(TEAM)
    lead, reader = team.briefing("lead"), team.briefing("reader")
    assert lead.startswith("You are lead, in the team review.") and lead.endswith("\n\nDivide the work.")
    assert "You work with writer, reader." in lead and "You speak to the user" in lead
    assert "You work with" not in reader and "You do not speak to the user" in reader


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"name": "Not A Name"}, "is no name"),
        ({"roles": {}}, "roles"),
        ({"roles": {"user": {"agent": "claude"}}}, "is no name"),
        ({"roles": {"claude-3": {"agent": "claude"}}}, "is no name"),
        ({"roles": {"a": {"agent": "claude", "peers": ["nobody"]}}}, "'nobody', who is not in the team"),
        ({"roles": {"a": {"agent": "claude", "peer": ["b"]}}}, "peer"),
        ({"roles": {"a": {}}}, "agent"),
        ({"timeouts": {"task": "soon"}}, "timeouts.task"),
        ({"timeouts": {"tasks": "1s"}}, "tasks"),
    ],
)
def test_a_file_that_is_wrong_is_told_where(change: dict[str, object], said: str) -> None:
    with pytest.raises(AgtmuxError) as caught:
        read_sheet(TEAM | change)
    assert caught.value.code == "E_USAGE" and said in caught.value.message


def test_the_example_is_a_team_that_can_be_launched(tmp_path: Path) -> None:
    file = Path(__file__).resolve().parents[3] / "docs" / "examples" / "review-team.toml"
    team = read_sheet({"folder": str(tmp_path), **tomllib.loads(file.read_text("utf-8"))})
    assert team.name == "review" and {name: team.role(name).peers for name in team.roles} == {
        "lead": ("writer", "reader", "user"),
        "writer": ("lead",),
        "reader": ("lead", "writer"),
    }
    registry = Registry.load()
    for name in team.roles:
        order_of(team, name, registry, tmp_path).checked(registry)


def test_each_step_has_the_time_that_was_asked_for() -> None:
    """orchestrator: start time-out, send time-out, receive time-out, task time-out, idle time-out."""
    seconds = {name: Timeouts().microseconds(name) / SECOND for name in Timeouts.__struct_fields__}
    assert seconds == {"start": 30, "send": 10, "receive": 60, "task": 300, "idle": 120}
    assert parse_duration(Config().launch.start_timeout) == 30 * SECOND
    assert (LONGEST_SEND, LONGEST_FETCH) == (10, 60)


def at(seconds: float) -> Timestamp:
    return Timestamp(int(seconds * SECOND))


WAITING = Message(
    "ab12cd34ef56ab78",
    Party("lead"),
    Party("writer"),
    MessageType.TASK_REQUEST,
    Priority.NORMAL,
    "x",
    1,
    sent_at=at(0),
    expires_at=at(3600),
    reason=Reason.DIALOG_OPEN,
)
GIVEN = replace(WAITING, status=Status.DELIVERED, settled_at=at(5), reason=Reason.NONE)


@pytest.mark.parametrize(
    ("task", "now", "is_at_rest", "steps"),
    [
        (Task(WAITING), 10, False, set()),
        (Task(WAITING), 11, False, {"send"}),
        (Task(WAITING), 301, True, {"send", "task"}),
        (Task(GIVEN), 60, False, set()),
        (Task(GIVEN), 66, False, {"receive"}),
        (Task(GIVEN, heard_at=at(40)), 66, False, set()),
        (Task(GIVEN, heard_at=at(40)), 301, False, {"task"}),
        (Task(GIVEN, heard_at=at(40)), 161, False, set()),
        (Task(GIVEN, heard_at=at(40)), 161, True, {"idle"}),
        (Task(GIVEN, heard_at=at(40), is_over=True), 999, True, set()),
        (Task(replace(WAITING, status=Status.REFUSED)), 999, True, set()),
    ],
)
def test_who_gave_a_task_hears_what_takes_too_long(task: Task, now: float, is_at_rest: bool, steps: set[str]) -> None:
    """orchestrator: send time-out, receive time-out, task time-out, idle time-out."""
    told = overdue(task, at(now), Timeouts(), is_at_rest=is_at_rest)
    assert set(told) == steps
    assert all("writer" in text for text in told.values())


@pytest.mark.parametrize(
    ("status", "reason", "said"),
    [
        (Status.EXPIRED, Reason.TTL_ENDED, "before its time was over"),
        (Status.REFUSED, Reason.RECEIVER_ENDED, "its receiver has ended"),
        (Status.UNCERTAIN, Reason.RECEIVER_ENDED, "nobody can tell"),
        (Status.REFUSED, Reason.TAKEN_BACK, None),
        (Status.REFUSED, Reason.DIALOG_OPEN, None),
    ],
)
def test_what_will_not_be_delivered_is_not_told_as_what_will(status: Status, reason: Reason, said: str | None) -> None:
    told = overdue(Task(replace(WAITING, status=status, reason=reason)), at(999), Timeouts())
    assert set(told) == (set() if said is None else {"lost"})
    assert all(said in text and "as soon as it can" not in text for text in told.values() if said is not None)


def test_of_a_receiver_that_has_ended_nobody_says_that_it_goes_on():
    told = overdue(Task(GIVEN), at(301), Timeouts(), has_ended=True)
    assert set(told) == {"receive", "task", "idle"}
    assert all("It has ended" in text and "It goes on" not in text for text in told.values())


@contextlib.asynccontextmanager
async def a_given_task(directory: Path, clock: FakeTime) -> AsyncIterator[tuple[Teams, TeamSheet, Post]]:
    """A team with one task, which an idle member has been given just now."""
    async with a_core(directory, clock) as core:
        await core.look(seen(), seen(pid=200, pane=a_pane("%2")))
        await core.take(an_event(state="idle", runtime_id=core.world.records[HOST, PaneId("%2")].runtime.runtime_id))
        mailbox, roles = Mailbox(core.database), Directory(core.world, core.database)
        postman = Postman(mailbox, cast(Gate, None), core.world, core.clock, Supervisor())
        policy = MailPolicy(MailLimits())
        post = Post(core.world, core.clock, roles, mailbox, postman, policy, 3_600 * SECOND)
        teams = Teams(core.world, core.clock, core.database, roles, post)
        sheet = read_sheet({"name": "t", "roles": {"lead": {"agent": "claude"}, "writer": {"agent": "claude"}}})
        await teams.bring(sheet)
        receiver = post.agent((HOST, PaneId("%2"))).party
        assert receiver.runtime_id is not None
        await roles.give(receiver.runtime_id, sheet.role("writer"), core.clock.now())
        letter = Letter("count", MessageType.TASK_REQUEST)
        request = message_of(Party("user"), receiver, letter, core.clock.now(), 3_600 * SECOND)
        await mailbox.put([replace(request, status=Status.DELIVERED, settled_at=core.clock.now())])
        yield teams, sheet, post


async def test_a_role_is_confirmed_once_a_turn_has_ended_since_it_was_given(tmp_path: Path) -> None:
    """orchestrator: starting. The next daemon knows it too."""
    clock = FakeTime()
    for number in range(2):
        async with a_core(tmp_path, clock) as core:
            await core.look(seen())
            runtime_id = core.world.records[HOST, PaneId(PANE)].runtime.runtime_id
            roles = Directory(core.world, core.database)
            await roles.load()
            core.ingest.on_change.append(roles.changed)
            assert roles.is_confirmed(runtime_id) == bool(number)
            if number:
                continue
            # A turn that ended before says nothing.
            await core.take(an_event("e1", "completed", runtime_id=runtime_id))
            clock.pass_by(1)
            await roles.give(runtime_id, Role("writer", "t"), core.clock.now())
            roles.changed({(HOST, PaneId(PANE))}, core.clock.now())
            clock.pass_by(1)
            await core.take(an_event("e2", "running", at=2, runtime_id=runtime_id))
            assert not roles.is_confirmed(runtime_id)
            clock.pass_by(1)
            await core.take(an_event("e3", "completed", at=3, runtime_id=runtime_id))
            assert roles.is_confirmed(runtime_id)


async def test_a_task_of_which_all_was_told_is_not_looked_after_any_more(tmp_path: Path) -> None:
    clock = FakeTime()
    async with a_given_task(tmp_path, clock) as (teams, sheet, post):
        looked = []
        for seconds in (1, 70, 100, 200):
            clock.pass_by(seconds)
            looked.append(await teams._look_after(sheet))
        # A second after, then with receive, idle and task.
        assert looked == [True, True, True, False]
        assert len(await post.mailbox.listing(Wanted(type=MessageType.ERROR), 10)) == 3


async def test_no_notice_is_lost_if_one_cannot_be_written_down(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(supervisor_module, "_BEGIN_AGAIN", 0.0)
    clock, supervisor = FakeTime(), Supervisor()
    async with a_given_task(tmp_path, clock) as (teams, _, post):
        notify, told = post.notify, asyncio.Event()
        fails = [AgtmuxError(ErrorCode.STORE, "the disk is full")]

        async def failing_once(receiver: Party, letter: Letter) -> None:
            if fails:
                raise fails.pop()
            await notify(receiver, letter)
            if len(await post.mailbox.listing(Wanted(type=MessageType.ERROR), 10)) == 3:
                told.set()

        monkeypatch.setattr(post, "notify", failing_once)
        # All that there is to tell is due at once.
        clock.pass_by(400)
        supervisor.spawn(teams.run, "teams")
        try:
            async with asyncio.timeout(10.0):
                await told.wait()
        finally:
            await supervisor.close()
        assert supervisor.failures == {"teams": 1}


@contextlib.asynccontextmanager
async def a_task_outside(directory: Path, clock: FakeTime, **times: str) -> AsyncIterator[tuple[Teams, Post, Message]]:
    """An idle agent of no team has been given a task just now, or by an earlier daemon."""
    async with a_core(directory, clock) as core:
        await core.look(seen(), seen(pid=200, pane=a_pane("%2")))
        runtimes = {pane: core.world.records[HOST, PaneId(pane)].runtime.runtime_id for pane in (PANE, "%2")}
        await core.take(an_event(f"idle-{clock.wall}", "idle", runtime_id=runtimes["%2"]))
        mailbox, roles = Mailbox(core.database), Directory(core.world, core.database)
        postman = Postman(mailbox, cast(Gate, None), core.world, core.clock, Supervisor())
        # Nothing is typed here.
        for each in runtimes.values():
            postman.hold(each)
        post = Post(core.world, core.clock, roles, mailbox, postman, MailPolicy(MailLimits()), 3_600 * SECOND)
        teams = Teams(core.world, core.clock, core.database, roles, post, Timeouts(**times))
        await teams.load()
        earlier = await mailbox.listing(Wanted(type=MessageType.TASK_REQUEST), 1)
        if not earlier:
            sender, receiver = (post.agent((HOST, PaneId(pane))) for pane in (PANE, "%2"))
            sent = await post.send(sender, receiver.party.name, Letter("count", MessageType.TASK_REQUEST))
            earlier = await mailbox.take(receiver.party, core.clock.now(), 1)
            assert [sent.message_id] == [each.message_id for each in earlier]
        yield teams, post, earlier[0]


async def notices(post: Post) -> list[tuple[str, str]]:
    """To whom, and about which step."""
    told = await post.mailbox.listing(Wanted(type=MessageType.ERROR), 20)
    return [(each.receiver.name, str(each.request_ref).partition(":")[0]) for each in reversed(told)]


async def test_who_gives_a_task_outside_a_team_hears_what_takes_too_long(tmp_path: Path) -> None:
    """The times of seed 002, of a task for an agent that is in no team."""
    clock = FakeTime()
    async with a_task_outside(tmp_path, clock) as (teams, post, request):
        giver = request.sender.name
        expected = []
        for seconds, step in ((59, None), (2, "receive"), (60, "idle"), (180, "task")):
            clock.pass_by(seconds)
            is_open = await teams._look_after_others()
            expected += [(giver, step)] if step else []
            assert await notices(post) == expected
        # Nothing more will be told: it costs nothing from here on.
        assert not is_open and not teams._given


async def test_an_answered_task_outside_a_team_is_told_of_by_nobody(tmp_path: Path) -> None:
    clock = FakeTime()
    async with a_task_outside(tmp_path, clock) as (teams, post, request):
        answer = Letter("4", MessageType.TASK_COMPLETE, reply_to=request.message_id)
        await post.send(post.agent((HOST, PaneId("%2"))), request.sender.name, answer)
        clock.pass_by(1_000)
        assert not await teams._look_after_others()
        assert await notices(post) == []


async def test_the_next_daemon_goes_on_with_it_and_tells_nothing_twice(tmp_path: Path) -> None:
    clock = FakeTime()
    async with a_task_outside(tmp_path, clock) as (teams, post, _):
        clock.pass_by(61)
        await teams._look_after_others()
        assert [step for _, step in await notices(post)] == ["receive"]
    clock.pass_by(240)
    async with a_task_outside(tmp_path, clock) as (teams, post, _):
        await teams._look_after_others()
        assert sorted(step for _, step in await notices(post)) == ["idle", "receive", "task"]


async def test_its_times_are_settings_and_none_is_no_limit(tmp_path: Path) -> None:
    clock = FakeTime()
    async with a_task_outside(tmp_path, clock, receive="0s", idle="0s", task="2s") as (teams, post, _):
        clock.pass_by(1_000)
        assert not await teams._look_after_others()
        assert [step for _, step in await notices(post)] == ["task"]


async def test_a_task_within_a_team_is_told_of_once_and_by_the_teams_times(tmp_path: Path) -> None:
    clock = FakeTime()
    async with a_given_task(tmp_path, clock) as (teams, sheet, post):
        teams._given = {each.message_id: None for each in await post.mailbox.listing(Wanted(), 9)}
        clock.pass_by(400)
        await teams._look_after_others()
        assert await notices(post) == []
        await teams._look_after(sheet)
        assert len(await notices(post)) == 3
