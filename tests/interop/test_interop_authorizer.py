"""Our decisions about access control lists beside those of Apache Kafka's own StandardAuthorizer, on random lists.

A few thousand by default; TANIST_AUTHORIZER_DECISIONS says how many (a million take some minutes).
"""

from __future__ import annotations

import json
import os
import random
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

import pytest

from tanist.controller.features import CIDR_ACLS_FROM
from tanist.controller.image.acls import Acl
from tanist.security.acls import AclImage
from tests.interop.apache import PIN, TOOL_FLAGS, jars
from tests.security.acl_samples import HOSTS, NAMES, OPERATIONS, PRINCIPALS, TYPES, random_acl

pytestmark = [pytest.mark.interop, pytest.mark.usefixtures("java")]

JUDGE: Final = Path(__file__).with_name("AuthorizerJudge.java")
DECISIONS: Final = int(os.environ.get("TANIST_AUTHORIZER_DECISIONS", "20000"))
RANGES: Final = PIN.metadata_version >= CIDR_ACLS_FROM
"""Whether the original knows ranges of addresses."""
_QUESTIONS: Final = 200
"""About one list."""
_BATCH: Final = 500
"""Lists that are in memory at once."""


class Question(NamedTuple):
    principal: str
    host: str
    operation: int
    resource_type: int
    name: str | None
    """None: any of the type."""


class Case(NamedTuple):
    acls: list[Acl]
    super_users: tuple[str, ...]
    allow_everyone: bool
    questions: list[Question]

    def json(self) -> str:
        """As the judge reads it."""
        properties = {
            "super.users": ";".join(self.super_users),
            "allow.everyone.if.no.acl.found": str(self.allow_everyone).lower(),
        }
        acls = [
            [a.resource_type, a.resource_name, a.pattern_type, a.principal, a.host, a.operation, a.permission]
            for a in self.acls
        ]
        return json.dumps({"properties": properties, "acls": acls, "questions": self.questions})

    def decided(self) -> str:
        """What we say."""
        image = AclImage(self.acls, super_users=self.super_users, allow_everyone=self.allow_everyone)
        return "".join("ny"[_ask(image, question)] for question in self.questions)


def _ask(image: AclImage, question: Question) -> bool:
    principal, host, operation, kind, name = question
    if name is None:
        return image.by_type(principal, host, operation, kind)
    return image.decide(principal, host, operation, kind, name)


def cases(count: int, seed: int) -> Iterator[Case]:
    """Random lists of all sizes."""
    draw = random.Random(seed)
    for _ in range(count):
        acls = list(dict.fromkeys(random_acl(draw, ranges=RANGES) for _ in range(draw.choice((0, 1, 2, 5, 20, 60)))))
        types = [acl.resource_type for acl in acls] or list(TYPES)
        questions = [
            Question(
                draw.choice(PRINCIPALS),
                draw.choice(HOSTS),
                draw.choice(OPERATIONS),
                draw.choice((*types, *TYPES)),
                draw.choice((*NAMES, "abcde", "**", "z", None, None)),
            )
            for _ in range(_QUESTIONS)
        ]
        yield Case(acls, ("User:a",) if draw.random() < 0.1 else (), draw.random() < 0.3, questions)


def verdicts(asked: list[Case]) -> list[str]:
    """What Apache Kafka says."""
    done = subprocess.run(
        ["java", *TOOL_FLAGS, "-cp", f"{jars()}/*", str(JUDGE)],
        input="\n".join(case.json() for case in asked) + "\n",
        capture_output=True,
        text=True,
        check=False,
        encoding="utf-8",
        env={**os.environ, "JAVA_TOOL_OPTIONS": "-Dfile.encoding=UTF-8"},
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return [line for line in done.stdout.splitlines() if set(line) <= set("ynx")]


def test_the_same_decisions_as_apache_kafkas_authorizer() -> None:
    left = max(1, DECISIONS // _QUESTIONS)
    answers: set[str] = set()
    seed = 40
    while left:
        asked = list(cases(min(left, _BATCH), seed))
        for case, expected in zip(asked, verdicts(asked), strict=True):
            found = case.decided()
            differing = [
                (question, mine, theirs)
                for question, mine, theirs in zip(case.questions, found, expected, strict=True)
                if mine != theirs
            ]
            assert not differing, (case.acls, case.super_users, case.allow_everyone, differing[:3])
            answers.update(expected)
        left -= len(asked)
        seed += 1
    assert answers == {"y", "n"}
