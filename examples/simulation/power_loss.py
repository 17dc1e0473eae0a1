"""Write your own simulation: a cluster, a fault and a check, from one seed."""

import sys

from tanist.sim.faults.schedule import Fault
from tanist.sim.run.chaos_run import ChaosConfig, ChaosRun

seed = int(sys.argv[1]) if len(sys.argv) > 1 else 7
power_loss = Fault(at_us=3_000_000, kind="power-loss", host=1, other=2, duration_us=1_500_000, detail=0.5)
run = ChaosRun(seed, ChaosConfig(), faults=[power_loss], operations=[])  # three nodes, clients, checkers
result = run.run()
assert result.violation is None, result.violation
acknowledged = {send.value for send in run.history.sends if send.outcome == "ok"}
missing = acknowledged - {read.value for read in run.history.reads}  # your own check
assert not missing, f"{len(missing)} acknowledged records were never read"
print(f"seed {seed}: {len(acknowledged)} acknowledged records, all read; digest {result.digest[:16]}")
