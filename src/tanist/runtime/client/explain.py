"""Why a partition is as it is, in a sentence with the KIP's rule (`tanist topics describe --explain`).

`explain` is a pure function of what a cluster tells about a partition, its topic's settings and its brokers; nothing is
asked for here, and nothing decided: the controller has decided already, and this says by which rule. The order of the
cases is KIP-966's: while the recovery manager decides, rules 1 to 4c of "Unclean recovery"; without it the "Delivery
plan" of the first phase, which is also what Apache Kafka ships; without ELR, Kafka as it was before the KIP.
"""

from __future__ import annotations

from collections.abc import Sized
from dataclasses import dataclass

NONE, BALANCED, AGGRESSIVE = "None", "Balanced", "Aggressive"
"""The strategies, as `unclean.recovery.strategy` names them."""

_RULE = "KIP-966 leader election"
_PLAN = "KIP-966 delivery plan"
_OLD = "Kafka before KIP-966"
_SWITCH = "unclean.leader.election.enable"


@dataclass(frozen=True, slots=True, kw_only=True)
class Situation:
    """A partition, and what else its leader depends on."""

    leader: int
    """-1: none."""
    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    elr: tuple[int, ...] = ()
    last_known_elr: tuple[int, ...] = ()
    offline: frozenset[int] = frozenset()
    """Replicas that cannot serve: their brokers are fenced, or unknown, or their log directories have failed."""
    not_running: frozenset[int] = frozenset()
    """Replicas whose processes are known not to run, though the cluster's metadata does not show it yet."""
    without_directory: frozenset[int] = frozenset()
    """Of the offline ones, those whose brokers are live: their log directories have failed."""
    unregistered: frozenset[int] = frozenset()
    """Of the offline ones, those that the cluster does not know any more: nobody waits for them."""
    min_isr: int = 1
    """`min.insync.replicas` as configured."""
    high_watermark_waits: bool = True
    """KIP-966's rule, which no setting of tanist switches off: below min.insync.replicas the high watermark stands."""
    elr_enabled: bool = True
    """`eligible.leader.replicas.version` is 1."""
    recovery_manager: bool = True
    """`unclean.recovery.manager.enabled`; it needs ELR."""
    strategy: str = BALANCED
    """Which the recovery manager follows."""
    last_unclean_epoch: int = -1
    """The leader epoch that last began with an unclean election."""
    unclean_election: bool = False
    """`unclean.leader.election.enable`, which counts where the recovery manager does not decide."""

    @property
    def effective_min_isr(self) -> int:
        """KIP: "the effective min.insync.replicas will be min(min.insync.replicas, replication factor)"."""
        return min(self.min_isr, len(self.replicas))

    @property
    def under_min_isr(self) -> bool:
        return len(self.isr) < self.effective_min_isr

    @property
    def at_min_isr(self) -> bool:
        return len(self.isr) == self.effective_min_isr

    @property
    def under_replicated(self) -> bool:
        return len(self.isr) < len(self.replicas)

    @property
    def live(self) -> tuple[int, ...]:
        """Replicas that could lead, in the order in which they are preferred."""
        return tuple(replica for replica in self.replicas if not self.is_away(replica))

    def is_away(self, replica: int) -> bool:
        """Whether it cannot serve, as far as anybody knows."""
        return replica in self.offline or replica in self.not_running


def explain(situation: Situation) -> str:
    """One sentence, without a full stop."""
    sentence = _explain(situation)
    early = [each for each in situation.replicas if each in situation.not_running - situation.offline]
    if early:
        do = "does" if len(early) == 1 else "do"
        sentence += f"; {_brokers(*early)} {do} not run, and {_is(early)} not fenced yet"
    if situation.last_unclean_epoch < 0:
        return sentence
    epoch = situation.last_unclean_epoch
    return f"{sentence}; leader epoch {epoch} began with an unclean election: records committed before it may be lost"


def _explain(situation: Situation) -> str:
    if situation.leader >= 0:
        return _led(situation)
    if situation.isr:
        return f"no leader: {_isr_away(situation)}"
    if situation.elr:
        return f"no leader: ISR is empty; {_elr_away(situation)}"
    if not situation.elr_enabled:
        nobody = "no replica is known to have every record: an operator has to choose"
        return f"no leader: ISR is empty; {_before_the_kip(situation, nobody)}"
    if situation.recovery_manager:
        return f"no leader: ISR and ELR are empty; {_nobody_eligible(situation)}"
    return f"no leader: ISR and ELR are empty; {_last_known_leader(situation)}"


# -- with a leader ----------------------------------------------------------------------------------------------------


def _led(situation: Situation) -> str:
    if situation.leader in situation.not_running:
        return f"{_brokers(situation.leader)} is the leader in the metadata only, so nobody serves"
    if not situation.under_replicated:
        return f"{_brokers(situation.leader)} leads and every replica is in sync"
    missing = [replica for replica in situation.replicas if replica not in situation.isr]
    absent = " and ".join(
        f"{_brokers(*group)} {_is(group)} {why}"
        for group, why in (
            ([replica for replica in missing if situation.is_away(replica)], "offline"),
            ([replica for replica in missing if not situation.is_away(replica)], "catching up"),
        )
        if group
    )
    needed = f"min.insync.replicas={situation.effective_min_isr}"
    if situation.under_min_isr:
        high_watermark = (
            "stands still (KIP-966 high watermark requirement)"
            if situation.high_watermark_waits
            else f"goes on with those in sync ({_OLD})"
        )
        text = (
            f"{_brokers(situation.leader)} leads, but {absent}; with {len(situation.isr)} in sync of {needed}, "
            f"acks=all is refused and the high watermark {high_watermark}"
        )
        if situation.elr:
            have = "has" if len(situation.elr) == 1 else "have"
            text += f"; {_brokers(*situation.elr)} {have} every record below it and may lead (KIP-966 ELR)"
        return text
    spare = len(situation.isr) - situation.effective_min_isr
    then = "one more loss stops acks=all" if spare == 0 else f"{spare} more may fail before acks=all stops"
    return f"{_brokers(situation.leader)} leads, and {absent}; {len(situation.isr)} in sync meet {needed}, {then}"


# -- without one ------------------------------------------------------------------------------------------------------


def _isr_away(situation: Situation) -> str:
    isr = situation.isr
    back = [replica for replica in isr if not situation.is_away(replica)]
    if back:
        return f"{_brokers(*back)} {_is(back)} in the ISR and live, and about to be elected ({_RULE} 1)"
    members = f"{_brokers(*isr)}, the last of the ISR, {_is(isr)} offline"
    if situation.elr_enabled:
        # An ISR from before ELR was enabled: a dead member shuts the way to the ELR, for it may have newer records.
        if situation.unclean_election and not situation.recovery_manager:
            return f"{members}; {_SWITCH}=true does not wait: {_any_live(situation)} ({_PLAN})"
        return f"{members} and {_is(isr)} waited for ({_RULE} 1)"
    return f"{members}; {_before_the_kip(situation, f'{_brokers(*isr)} {_is(isr)} waited for')}"


def _elr_away(situation: Situation) -> str:
    elr = situation.elr
    back = [replica for replica in elr if not situation.is_away(replica)]
    if back:
        return f"{_brokers(*back)} {_is(back)} eligible (ELR) and live, and about to be elected ({_RULE} 2)"
    if situation.without_directory.issuperset(elr):
        away = f"{'its log directory is' if len(elr) == 1 else 'their log directories are'} offline"
    else:
        away = "fenced" if (situation.offline - situation.without_directory).issuperset(elr) else "offline"
    members = f"{_brokers(*elr)} {_is(elr)} eligible (ELR) but {away}"
    waits = f"waits for {_it(elr)}"
    if not situation.elr_enabled:
        return (
            f"{members}; {_before_the_kip(situation, f'{_brokers(*elr)}, left over from ELR, {_is(elr)} waited for')}"
        )
    if situation.recovery_manager:
        if situation.strategy == AGGRESSIVE:
            return f"{members}; strategy Aggressive does not wait: {_longest_log(situation)} ({_RULE} 3a)"
        return f"{members}; strategy {situation.strategy} {waits} ({_RULE} 3b)"
    if situation.unclean_election:
        return f"{members}; {_SWITCH}=true does not wait: {_any_live(situation)} ({_PLAN})"
    return f"{members}; {_SWITCH}=false {waits} ({_PLAN})"


def _nobody_eligible(situation: Situation) -> str:
    """Rule 4, the recovery manager's."""
    if situation.strategy == AGGRESSIVE:
        return f"strategy Aggressive recovers uncleanly: {_longest_log(situation)} ({_RULE} 4a)"
    if situation.strategy == NONE:
        how = "`tanist recovery plan` shows what each choice loses"
        return f"strategy None leaves the choice to an operator: {how} ({_RULE} 4c)"
    registered = [replica for replica in situation.replicas if replica not in situation.unregistered]
    last_known = [replica for replica in registered if replica in situation.last_known_elr]
    # As the controller does: with nobody in LastKnownElr who may return, everybody's log is compared.
    needed = last_known or registered
    away = [replica for replica in needed if situation.is_away(replica)]
    if away:
        of = " of LastKnownElr" if last_known else ""
        there = "there again" if situation.without_directory.intersection(away) else "unfenced"
        return f"strategy Balanced recovers uncleanly once {_brokers(*away)}{of} {_is(away)} {there} ({_RULE} 4b)"
    return f"strategy Balanced recovers uncleanly: {_longest_log(situation)} ({_RULE} 4b)"


def _last_known_leader(situation: Situation) -> str:
    """The first phase, and Apache Kafka (rules 34, 50): LastKnownElr holds the last leader, and nobody else."""
    last = situation.last_known_elr[0] if len(situation.last_known_elr) == 1 else None
    if last is not None and not situation.is_away(last):
        return f"{_brokers(last)}, the last known leader, is live and about to be elected ({_PLAN})"
    if situation.unclean_election:
        return f"{_SWITCH}=true: {_any_live(situation)} ({_PLAN})"
    if last is not None:
        return f"{_SWITCH}=false waits for {_brokers(last)}, the last known leader ({_PLAN})"
    how = "`tanist recovery plan` shows what each choice loses"
    return f"{_SWITCH}=false, and no last known leader is recorded: an operator has to choose; {how} ({_PLAN})"


def _before_the_kip(situation: Situation, otherwise: str) -> str:
    """With ELR off nothing but the old switch counts."""
    if situation.unclean_election:
        return f"ELR is off and {_SWITCH}=true: {_any_live(situation)} ({_OLD})"
    return f"ELR is off and {_SWITCH}=false: {otherwise} ({_OLD})"


# -- words ------------------------------------------------------------------------------------------------------------


def _longest_log(situation: Situation) -> str:
    if not situation.live:
        return "the first replica to return leads"
    return f"the longest log of {_brokers(*situation.live)} leads"


def _any_live(situation: Situation) -> str:
    if not situation.live:
        return "the first replica to return leads"
    return f"{_brokers(situation.live[0])}, the first that is live, leads next"


def _brokers(*brokers: int) -> str:
    if len(brokers) == 1:
        return f"broker {brokers[0]}"
    return f"brokers {', '.join(map(str, brokers[:-1]))} and {brokers[-1]}"


def _is(brokers: Sized) -> str:
    return "is" if len(brokers) == 1 else "are"


def _it(brokers: Sized) -> str:
    return "it" if len(brokers) == 1 else "the first of them to return"
