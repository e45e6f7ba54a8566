//! The elector's answers, step by step.

use std::fmt::Write;
use std::time::Duration;

use expect_test::{Expect, expect};
use jiff::Timestamp;

use super::{Action, Elector, Now};
use crate::record::{Record, Sighting};
use crate::timing::Timing;

/// Plays a script, a step a line: the time in seconds, and what comes of the
/// action that the elector wants then: `ok`, `fail`, `absent`, `free`, or
/// `held HOLDER RENEWED [SECONDS]`; nothing if it wants to wait. After `resign` it
/// is asked to resign first. Writes down what the elector wanted.
#[track_caller]
fn check(script: &str, expected: Expect) {
    let mut elector = Elector::new("me", Timing::default(), 1);
    let mut out = String::new();
    for line in script.lines().map(str::trim).filter(|line| !line.is_empty()) {
        let mut words: Vec<&str> = line.split_whitespace().collect();
        let seconds: f64 = words[0].parse().unwrap();
        let now = at(seconds);
        if words.get(1) == Some(&"resign") {
            words.remove(1);
            elector.resign();
        }
        let action = elector.next(now);
        writeln!(out, "{seconds}: {}{}", show(&action), leads(&elector)).unwrap();
        match words[1..] {
            [] => {}
            ["ok"] => elector.wrote(now),
            ["fail"] => elector.failed(now),
            ["absent"] => elector.read(None, now),
            ["free"] => elector.read(Some(Record::default().into()), now),
            ["held", holder, renewed] => elector.read(Some(held(holder, renewed, 15)), now),
            ["held", holder, renewed, lasts] => {
                elector.read(Some(held(holder, renewed, lasts.parse().unwrap())), now);
            }
            _ => panic!("unreadable step: {line}"),
        }
    }
    expected.assert_eq(&out);
}

fn at(seconds: f64) -> Now {
    let elapsed = Duration::from_secs_f64(seconds);
    let wall = Timestamp::UNIX_EPOCH + elapsed;
    Now { elapsed, wall }
}

fn held(holder: &str, renewed: &str, lasts: i32) -> Sighting {
    let renewed = at(renewed.parse().unwrap()).wall;
    Record {
        holder: holder.to_owned(),
        lease_duration_seconds: lasts,
        acquire_time: Some(renewed),
        renew_time: Some(renewed),
        transitions: 7,
    }
    .into()
}

fn show(action: &Action) -> String {
    let record = |record: &Record| {
        let second = |time: Option<Timestamp>| time.map_or(-1, Timestamp::as_second);
        let (acquired, renewed) = (second(record.acquire_time), second(record.renew_time));
        format!(
            "{:?} for {}s, acquired {acquired}, renewed {renewed}, transitions {}",
            record.holder, record.lease_duration_seconds, record.transitions
        )
    };
    match action {
        Action::Wait(until) => format!("wait until {:.1}", until.as_secs_f64()),
        Action::Read => "read".to_owned(),
        Action::Create(new) => format!("create {}", record(new)),
        Action::Update(new) => format!("update {}", record(new)),
        Action::Stop(ended) => format!("stop: {ended:?}"),
    }
}

fn leads(elector: &Elector) -> String {
    elector
        .leads_until()
        .map_or_else(String::new, |u| format!(" (leads until {:.1})", u.as_secs_f64()))
}

#[test]
fn creates_a_lock_that_does_not_exist_and_renews_it() {
    check(
        "0 absent
         1 ok
         1.5
         3 ok
         4",
        expect![[r#"
            0: read
            1: create "me" for 15s, acquired 1, renewed 1, transitions 0
            1.5: wait until 3.0 (leads until 11.0)
            3: update "me" for 15s, acquired 1, renewed 3, transitions 0 (leads until 11.0)
            4: wait until 5.0 (leads until 13.0)
        "#]],
    );
}

#[test]
fn a_term_counts_from_when_the_request_was_sent() {
    let mut elector = Elector::new("me", Timing::default(), 1);
    assert_eq!(elector.next(at(0.0)), Action::Read);
    elector.read(None, at(3.0));
    assert!(matches!(elector.next(at(3.0)), Action::Create(_)));
    elector.wrote(at(7.0));
    assert_eq!(elector.leads_until(), Some(Duration::from_secs(13)));
}

#[test]
fn an_answer_that_comes_after_its_own_term_begins_none() {
    let mut elector = Elector::new("me", Timing::default(), 1);
    assert_eq!(elector.next(at(0.0)), Action::Read);
    elector.read(None, at(0.0));
    assert!(matches!(elector.next(at(0.0)), Action::Create(_)));
    elector.wrote(at(10.0));
    assert_eq!(elector.leads_until(), None);
    assert_eq!(elector.next(at(12.0)), Action::Read);
    // The lock is ours all the same, and the next write makes it a term.
    elector.read(Some(held("me", "0", 15)), at(12.0));
    assert!(matches!(elector.next(at(12.0)), Action::Update(record) if record.transitions == 7));
    elector.wrote(at(12.0));
    assert_eq!(elector.leads_until(), Some(Duration::from_secs(22)));
}

#[test]
fn waits_for_a_holder_that_renews_and_takes_over_when_it_stops() {
    check(
        "0 held other 100
         1
         4 held other 101
         8 held other 101
         12 held other 101
         16 held other 101
         18
         19 held other 101
         19 ok
         20",
        expect![[r#"
            0: read
            1: wait until 3.4
            4: read
            8: read
            12: wait until 12.3
            16: read
            18: wait until 19.0
            19: read
            19: update "me" for 15s, acquired 19, renewed 19, transitions 8
            20: wait until 21.0 (leads until 29.0)
        "#]],
    );
}

#[test]
fn times_in_the_record_do_not_matter() {
    // Renewed in 1970 or in the far future: only that it changes counts.
    check(
        "0 held other 0
         5 held other 99999999
         10 held other 1
         15 held other 0
         20 held other 0",
        expect![[r#"
            0: read
            5: read
            10: read
            15: read
            20: read
        "#]],
    );
}

#[test]
fn takes_a_lock_at_once_that_is_free_or_its_own() {
    check(
        "0 free\n0 ok\n0",
        expect![[r#"
        0: read
        0: update "me" for 15s, acquired 0, renewed 0, transitions 1
        0: wait until 2.0 (leads until 10.0)
    "#]],
    );
    check(
        "0 held me 3\n0 ok\n0",
        expect![[r#"
        0: read
        0: update "me" for 15s, acquired 3, renewed 0, transitions 7
        0: wait until 2.0 (leads until 10.0)
    "#]],
    );
}

#[test]
fn waits_as_long_as_the_holder_says_or_else_its_own_duration() {
    check(
        "0 held other 0 3\n3 held other 0 3\n3",
        expect![[r#"
        0: read
        3: read
        3: update "me" for 15s, acquired 3, renewed 3, transitions 8
    "#]],
    );
    check(
        "0 held other 0 0\n5 held other 0 0\n14.9 held other 0 0\n15 held other 0 0\n15",
        expect![[r#"
            0: read
            5: read
            14.9: read
            15: read
            15: update "me" for 15s, acquired 15, renewed 15, transitions 8
        "#]],
    );
    check(
        "0 held other 0 -4\n14.9 held other 0 -4\n15 held other 0 -4\n15",
        expect![[r#"
        0: read
        14.9: read
        15: read
        15: update "me" for 15s, acquired 15, renewed 15, transitions 8
    "#]],
    );
}

#[test]
fn a_lock_that_is_deleted_is_not_taken_before_its_lease_ran_out() {
    check(
        "0 held other 0\n5 absent\n10 absent\n15 absent\n15 ok\n15",
        expect![[r#"
        0: read
        5: read
        10: read
        15: read
        15: create "me" for 15s, acquired 15, renewed 15, transitions 8
        15: wait until 17.0 (leads until 25.0)
    "#]],
    );
    // But its leader puts it back.
    check(
        "0 absent\n0 ok\n2 fail\n2 absent\n2 ok\n2",
        expect![[r#"
        0: read
        0: create "me" for 15s, acquired 0, renewed 0, transitions 0
        2: update "me" for 15s, acquired 0, renewed 2, transitions 0 (leads until 10.0)
        2: read (leads until 10.0)
        2: create "me" for 15s, acquired 0, renewed 2, transitions 0 (leads until 10.0)
        2: wait until 4.0 (leads until 12.0)
    "#]],
    );
}

#[test]
fn a_failed_renewal_reads_and_tries_again_until_the_deadline() {
    check(
        "0 absent
         0 ok
         2 fail
         2 held me 0
         2 ok
         4 fail
         4 fail
         5
         6 fail
         8 fail
         10 fail
         11
         12",
        expect![[r#"
            0: read
            0: create "me" for 15s, acquired 0, renewed 0, transitions 0
            2: update "me" for 15s, acquired 0, renewed 2, transitions 0 (leads until 10.0)
            2: read (leads until 10.0)
            2: update "me" for 15s, acquired 0, renewed 2, transitions 7 (leads until 10.0)
            4: update "me" for 15s, acquired 0, renewed 4, transitions 7 (leads until 12.0)
            4: read (leads until 12.0)
            5: wait until 6.0 (leads until 12.0)
            6: read (leads until 12.0)
            8: read (leads until 12.0)
            10: read (leads until 12.0)
            11: wait until 12.0 (leads until 12.0)
            12: stop: Expired
        "#]],
    );
}

#[test]
fn a_leader_that_finds_another_holder_or_none_stops() {
    check(
        "0 absent\n0 ok\n2 fail\n2 held other 1\n2",
        expect![[r#"
        0: read
        0: create "me" for 15s, acquired 0, renewed 0, transitions 0
        2: update "me" for 15s, acquired 0, renewed 2, transitions 0 (leads until 10.0)
        2: read (leads until 10.0)
        2: stop: Taken { by: "other" }
    "#]],
    );
    check(
        "0 absent\n0 ok\n2 fail\n2 free\n2",
        expect![[r#"
        0: read
        0: create "me" for 15s, acquired 0, renewed 0, transitions 0
        2: update "me" for 15s, acquired 0, renewed 2, transitions 0 (leads until 10.0)
        2: read (leads until 10.0)
        2: stop: Taken { by: "" }
    "#]],
    );
}

#[test]
fn a_leader_that_was_frozen_stops_whatever_it_was_doing() {
    check(
        "0 absent\n0 ok\n60",
        expect![[r#"
        0: read
        0: create "me" for 15s, acquired 0, renewed 0, transitions 0
        60: stop: Expired
    "#]],
    );
    // In the middle of a renewal that is answered when it goes on.
    let mut elector = Elector::new("me", Timing::default(), 1);
    elector.next(at(0.0));
    elector.read(None, at(0.0));
    elector.next(at(0.0));
    elector.wrote(at(0.0));
    assert!(matches!(elector.next(at(2.0)), Action::Update(_)));
    elector.wrote(at(60.0));
    assert!(matches!(elector.next(at(60.0)), Action::Stop(_)));
    assert_eq!(elector.leads_until(), None);
}

#[test]
fn who_resigns_empties_the_lock() {
    check(
        "0 absent\n0 ok\n1 resign ok\n1",
        expect![[r#"
            0: read
            0: create "me" for 15s, acquired 0, renewed 0, transitions 0
            1: update "" for 1s, acquired 1, renewed 1, transitions 0
            1: stop: Resigned
        "#]],
    );
    // With a version that is out of date it reads first.
    check(
        "0 absent\n0 ok\n1 resign fail\n1 held me 0\n1 ok\n1",
        expect![[r#"
            0: read
            0: create "me" for 15s, acquired 0, renewed 0, transitions 0
            1: update "" for 1s, acquired 1, renewed 1, transitions 0
            1: read
            1: update "" for 1s, acquired 1, renewed 1, transitions 7
            1: stop: Resigned
        "#]],
    );
    check(
        "0 absent\n0 ok\n1 resign fail\n1 held other 0\n1",
        expect![[r#"
            0: read
            0: create "me" for 15s, acquired 0, renewed 0, transitions 0
            1: update "" for 1s, acquired 1, renewed 1, transitions 0
            1: read
            1: stop: Resigned
        "#]],
    );
    check(
        "0 absent\n0 ok\n1 resign fail\n1 fail\n1",
        expect![[r#"
            0: read
            0: create "me" for 15s, acquired 0, renewed 0, transitions 0
            1: update "" for 1s, acquired 1, renewed 1, transitions 0
            1: read
            1: stop: Resigned
        "#]],
    );
    check(
        "0 resign",
        expect![[r#"
        0: stop: Resigned
    "#]],
    );
}
