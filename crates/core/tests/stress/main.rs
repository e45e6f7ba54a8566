//! The scheduler under thousands of random events: nothing may get lost,
//! counted twice, bound twice or left waiting, whatever the order of things.
//!
//! A seed that fails can be looked at step by step:
//! `cargo run -p steersman-core --example stress -- --seed 17 --steps 5000 --trace`.

mod actions;
mod api;
mod checks;
mod desk;
mod effects;
mod extenders;
mod objects;
mod plugins;
mod promises;
mod report;
mod rng;
mod run;
mod storage;
mod told;

use std::io::Write as _;

use report::Totals;
use run::{Options, Tally, hush_planned_panics, run};

/// How many histories, and how long they are: about a minute, each twice.
const SEEDS: std::ops::Range<u64> = 0..10;
const STEPS: usize = 2000;

#[test]
fn random_histories_break_no_rule_and_repeat_themselves() {
    hush_planned_panics();
    let mut totals = Totals::default();
    for seed in SEEDS {
        let checked = Options { seed, steps: STEPS, checks: true, trace: false };
        let once = run(checked).unwrap_or_else(|failure| panic!("{failure}"));
        let repeated = Options { checks: false, ..checked };
        let again = run(repeated).unwrap_or_else(|failure| panic!("the second time: {failure}"));
        let lines = once.log.lines().zip(again.log.lines());
        if let Some((one, other)) = lines.into_iter().find(|(one, other)| one != other) {
            panic!("seed {seed}: once\n{one}\nand once\n{other}");
        }
        assert_eq!(once.log.len(), again.log.len(), "seed {seed}: one log is longer");
        totals.add(once.tally);
    }
    // Straight to the output: worth a look also when the test passes.
    let _ = writeln!(std::io::stdout(), "{totals}");

    // Histories in which nothing happens would prove nothing.
    let Tally { attempts, bound, flushed, panics, equal_pairs, evictions, called_off, .. } =
        totals.0;
    let Tally { refused, left_out, .. } = totals.0;
    assert!(refused > 50 && left_out > 50, "{refused} refused, {left_out} left out");
    let Tally { overtaken, .. } = totals.0;
    assert!(overtaken > 5, "{overtaken} bound by others meanwhile");
    let Tally { with_claims, written, conflicts, compared, .. } = totals.0;
    assert!(evictions > 30 && called_off > 20, "{evictions} evictions, {called_off} called off");
    assert!(with_claims > 100 && written > 40, "{with_claims} with claims, {written} written");
    assert!(conflicts > 3 && compared > 500, "{conflicts} conflicts, {compared} compared");
    assert!(bound > 250 && attempts > 3 * bound, "{attempts} attempts, {bound} bound");
    assert!(flushed > 10, "{flushed} pods flushed");
    assert!(panics > 10, "{panics} panics");
    assert!(equal_pairs > 200, "{equal_pairs} equal pairs");
}
