//! What the runs came to, for a look at how precise the wake-ups are.

use std::fmt;

use crate::run::Tally;

/// The tallies of several runs together.
#[derive(Debug, Default)]
pub(crate) struct Totals(pub(crate) Tally);

impl Totals {
    pub(crate) fn add(&mut self, tally: Tally) {
        let total = &mut self.0;
        total.attempts += tally.attempts;
        total.bound += tally.bound;
        total.flushed += tally.flushed;
        total.with_claims += tally.with_claims;
        total.written += tally.written;
        total.conflicts += tally.conflicts;
        total.compared += tally.compared;
        total.panics += tally.panics;
        total.evictions += tally.evictions;
        total.called_off += tally.called_off;
        total.overtaken += tally.overtaken;
        total.refused += tally.refused;
        total.left_out += tally.left_out;
        total.evaluated += tally.evaluated;
        total.equal_pairs += tally.equal_pairs;
        for (reason, (useful, vain)) in tally.wakes {
            let sum = total.wakes.entry(reason).or_default();
            sum.0 += useful;
            sum.1 += vain;
        }
    }
}

impl fmt::Display for Totals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Tally { attempts, bound, flushed, panics, evaluated, equal_pairs, wakes, .. } = &self.0;
        let Tally { evictions, called_off, overtaken, refused, left_out, .. } = &self.0;
        let Tally { with_claims, written, conflicts, compared, .. } = &self.0;
        writeln!(f, "{attempts} attempts, {bound} bound, {panics} panics")?;
        writeln!(f, "{evictions} preemptions with evictions, {called_off} bindings called off")?;
        writeln!(f, "{overtaken} times the pod was bound by another client meanwhile")?;
        writeln!(f, "{refused} refused by extenders, {left_out} times one was left out")?;
        writeln!(
            f,
            "{with_claims} placed with claims, {written} volumes and claims written, \
             {conflicts} conflicts, {compared} compared"
        )?;
        writeln!(
            f,
            "{flushed} flushed in vain, {evaluated} evaluations, {equal_pairs} equal pairs"
        )?;
        let (mut useful, mut vain) = (0, 0);
        for ((event, plugin), (helped, did_not)) in wakes {
            writeln!(f, "{helped:6} useful {did_not:6} in vain  {event} ({plugin})")?;
            useful += helped;
            vain += did_not;
        }
        let share = 100 * vain / (useful + vain).max(1);
        write!(f, "{useful:6} useful {vain:6} in vain: {share} %")
    }
}
