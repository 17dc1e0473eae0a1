"""Playing what a page asks for, and recording it: a play or a seed, with the user's actions.

Owns the request, its limits, and the order of the recording's lines: JSON, each a difference of two samples. The page's
own keys are `story` (the present step: what is done), `found` (what has come of it so far) and `run` (how it goes; with
the digest at the end).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

from tanist.lab.plays import PLAYS, Acting
from tanist.lab.simulation.properties import breach
from tanist.lab.stage import Stage
from tanist.sim.event_text import DOES, FAULT, story_line
from tanist.sim.events import Event, LifeBegan, RecordsLost
from tanist.sim.run import config
from tanist.sim.run.chaos_run import ChaosRun
from tanist.sim.run.drawing import config_of
from tanist.sim.scripted.cluster import ScriptError
from tanist.sim.world.world import Watcher, World
from tanist.text import counted
from tanist.web.actions import DOWN
from tanist.web.simulated.faults import Action, schedule
from tanist.web.simulated.findings import findings
from tanist.web.simulated.world_watcher import WorldWatcher
from tanist.web.state import Json

SEED: Final = "seed"
GROUPS: Final = config.GROUPS
"""In place of a play's name: a seed of the simulator, with clients or with consumer groups."""

_SEEDS: Final = {
    SEED: (
        "A seed",
        "A cluster, clients, operators and faults, all drawn from a number, and checked after every turn.",
    ),
    GROUPS: ("A seed with consumer groups", "The same, with consumer groups of both protocols."),
}
_ACTIONS_MAX: Final = 200
_AFTER_MS: Final = 2_000
"""How long a play goes on behind its end."""
_AFTER_ACTION_MS: Final = 15_000
_OWN_MS: Final = 20_000
_LINES: Final = 64

Sink: TypeAlias = Callable[[str], None]
"""Gets JSON: a list of differences."""


@dataclass(frozen=True, slots=True)
class Request:
    """What to play."""

    name: str
    settings: Mapping[str, str] = field(default_factory=dict)
    seed: int | None = None
    actions: tuple[Action, ...] = ()

    @classmethod
    def parse(cls, text: str) -> Request:
        """`ValueError` for anything that cannot be played."""
        found = json.loads(text)
        name, seed = found["name"], found.get("seed")
        if name not in PLAYS and name not in _SEEDS:
            raise ValueError(f"there is no play {name!r}")
        if seed is not None and (type(seed) is not int or not 0 <= seed < 1 << 62):
            raise ValueError(f"{seed!r} is no seed")
        actions = tuple(sorted(map(Action.parse, found.get("actions", ())), key=lambda each: each.at_us))
        if len(actions) > _ACTIONS_MAX:
            raise ValueError(f"more than {counted(_ACTIONS_MAX, 'action')}")
        return cls(name, dict(found.get("settings", {})), seed, actions)


def catalogue() -> Json:
    """What there is to play, for the page."""
    plays = [(name, each.title, each.about, each.seed, each.goes_on, each.settings) for name, each in PLAYS.items()]
    seeds = [(name, title, about, 1, False, ()) for name, (title, about) in _SEEDS.items()]
    return [
        {
            "name": name,
            "title": title,
            "about": about,
            "seed": seed,
            "goes_on": goes_on,
            "settings": [{"name": each.name, "choices": list(each.choices), "what": each.what} for each in settings],
        }
        for name, title, about, seed, goes_on, settings in (*plays, *seeds)
    ]


def play(request: str, sink: Sink) -> None:
    """Play it to its end. The last line has the digest, or says what cannot be played."""
    recording = _Recording(sink)
    try:
        wanted = Request.parse(request)
        if wanted.name in PLAYS:
            _act(wanted, recording)
        else:
            _run_seed(wanted, recording)
    except (ValueError, KeyError, TypeError) as error:
        recording.problem(str(error))
    recording.flush()


class _Recording:
    """Collects differences, and passes them on in portions."""

    def __init__(self, sink: Sink) -> None:
        self._sink = sink
        self._lines: list[str] = []
        self._watcher: WorldWatcher | None = None
        self._steps = 0
        self._shown: dict[str, Json] | None = None
        """All that is shown; None: nothing is said of what comes of a step."""
        self._outcomes: list[Json] = []

    def of_play(self, stage: Stage) -> None:
        """It tells what comes of each step; a run of the simulator has a thousand changes between two faults."""
        self._shown = {}
        self._watcher = WorldWatcher(stage.world, self._emit, high_watermark_waits=not stage.setup.before_the_kip)

    def of_run(self, world: World) -> None:
        self._watcher = WorldWatcher(world, self._emit)

    def _emit(self, at_ms: float, values: Mapping[str, Json], gone: tuple[str, ...]) -> None:
        if self._shown is not None:
            new = [{"at": at_ms, "text": text} for text in findings(self._shown, values)]
            if new or "story" in values:  # of which nothing has come yet
                self._outcomes = [*(() if "story" in values else self._outcomes), *new]
                values = {**values, "found": self._outcomes}
            self._shown.update(values)
        self._add({"at": at_ms, "set": values, "gone": gone})

    def _add(self, line: Mapping[str, Any]) -> None:
        self._lines.append(json.dumps(line, separators=(",", ":"), ensure_ascii=False))
        if len(self._lines) >= _LINES:
            self.flush()

    def flush(self) -> None:
        lines, self._lines = self._lines, []
        if lines:
            self._sink(f"[{','.join(lines)}]")

    def step(self, title: str, text: str) -> None:
        """The next step of the story."""
        self._steps += 1
        self._story({"number": self._steps, "title": title, "text": text})
        self.flush()

    def did(self, action: Action, text: str) -> None:
        self._steps += 1
        self._story({"number": self._steps, "title": "you", "text": text, "yours": True})

    def _story(self, value: Json) -> None:
        if self._watcher is not None:
            self._watcher.say(story=value)

    def end(self, world: World, **values: Json) -> None:
        if self._watcher is not None:
            self._watcher.finish()
            self._watcher.say(run={"state": "ended", "events": world.scheduler.events, **values})

    def problem(self, text: str) -> None:
        self._add({"at": 0, "set": {"run": {"state": "refused", "text": text}}, "gone": ()})


def _act(wanted: Request, recording: _Recording) -> None:
    acting = Acting.of(wanted.name, wanted.settings, wanted.seed)
    world = acting.stage.world
    recording.of_play(acting.stage)
    schedule(world, wanted.actions, recording.did)
    last_us = max((each.at_us + _AFTER_ACTION_MS * 1000 for each in wanted.actions), default=0)
    acting.stage.until_us = max(last_us, _OWN_MS * 1000)
    with acting.play.broken(acting.settings):
        try:
            for title, text in acting.steps():
                recording.step(title, text)
        except ScriptError:
            recording.step("another way", "the cluster has gone another way than the play: from here on it is yours")
        digest = world.digest
        world.run_for(max(_AFTER_MS, (last_us - world.now_us) // 1000))
    ending = acting.ending
    recording.end(world, digest=digest, lost=None if ending is None else len(ending.lost))


def _run_seed(wanted: Request, recording: _Recording) -> None:
    seed = 1 if wanted.seed is None else wanted.seed
    run = ChaosRun(seed, config_of(seed, config.RECORDS if wanted.name == SEED else config.GROUPS))
    recording.of_run(run.world)
    run.world.watchers.insert(0, _Narrator(recording, run.world))  # before the checkers, which may end the run

    def did(action: Action, text: str) -> None:
        if action.node is not None and action.kind in DOWN:
            run.nemesis.taken_down.add(action.node)
        recording.did(action, text)

    schedule(run.world, wanted.actions, did)
    outcome = run.run()
    if outcome.violation is not None:
        text = f"{breach(outcome.violation.property_id)}: {outcome.violation.message}"
        recording.step("violation", text)
    recording.end(
        run.world,
        digest=outcome.digest,
        acknowledged=outcome.acknowledged,
        lost=outcome.lost,
        faults=outcome.faults,
        violation=None if outcome.violation is None else outcome.violation.property_id,
    )


class _Narrator(Watcher):
    """The steps of a seed: its faults and its operators."""

    def __init__(self, recording: _Recording, world: World) -> None:
        self._recording = recording
        self._names = {host.name: f"node {host.node_id}" for host in world.hosts.values()}

    def happened(self, event: Event) -> None:
        rendered = story_line(event, lambda host: self._names.get(host, host))
        if rendered is None or (isinstance(event, LifeBegan) and event.life == 1):
            return
        if rendered.level in (FAULT, DOES):
            self._recording.step(rendered.who, rendered.text)
        elif isinstance(event, RecordsLost):
            self._recording.step("records are lost", rendered.text)
