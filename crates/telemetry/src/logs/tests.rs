use std::io::{self, Write};
use std::sync::Arc;
use std::time::Duration;
use std::{process, thread};

use expect_test::{Expect, expect};
use jiff::Timestamp;
use jiff::tz::{self, TimeZone};
use parking_lot::{Condvar, Mutex};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::registry::Registry;

use super::{Clock, Format, Gates, Options, Routing, Size, Streams, Verbosity, layer};

/// What was written, for tests to read.
#[derive(Clone, Default)]
struct Paper(Arc<Mutex<Vec<u8>>>);

impl Paper {
    fn text(&self) -> String {
        String::from_utf8(self.0.lock().clone()).unwrap()
    }
}

impl Write for Paper {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// 2026-11-30T11:34:56.789012Z, an hour later in local time.
fn noon() -> Clock {
    let now: Timestamp = "2026-11-30T11:34:56.789012Z".parse().unwrap();
    Clock::new(move || now, TimeZone::fixed(tz::offset(1)))
}

fn options(format: Format) -> Options {
    Options { format, clock: noon(), ..Options::default() }
}

/// What goes to stdout and to stderr.
fn logged(options: Options, log: impl FnOnce()) -> (String, String) {
    let (info, error) = (Paper::default(), Paper::default());
    let streams = Streams { info: Box::new(info.clone()), error: Box::new(error.clone()) };
    let (layer, control) = layer(options, streams).unwrap();
    tracing::subscriber::with_default(Registry::default().with(vec![layer]), log);
    control.flush();
    (info.text(), error.text())
}

/// Line numbers and the process change, the rest is as it should be.
#[track_caller]
fn check_lines(found: &str, expected: &Expect) {
    let pid = format!("{:>7} tests.rs", process::id());
    let found = found.replace(&pid, "    PID tests.rs");
    let mut lines = String::new();
    for line in found.split_inclusive('\n') {
        match line.split_once("tests.rs:") {
            Some((before, after)) => {
                let after = after.trim_start_matches(|c: char| c.is_ascii_digit());
                lines.extend([before, "tests.rs:N", after]);
            }
            None => lines.push_str(line),
        }
    }
    expected.assert_eq(&lines);
}

fn samples() {
    let error = io::Error::other("the disk is gone");
    let r#type = "odd";
    tracing::info!(pod = %"default/web-0", node = "n\"1", n = 3, load = 0.5, ok = true, "bound");
    tracing::warn!(minus = -1, list = ?["a"], "careful\nplease");
    tracing::error!(pod = "default/web-0", %error, "the attempt failed");
    tracing::error!(err = &error as &dyn std::error::Error, r#type, "another");
    tracing::info!(message = "no\tfields", v = 0);
    tracing::info!(text = "two\nlines", not_a_number = f64::NAN, "long");
    tracing::debug!("not at this verbosity");
    tracing::info!(v = 2, pod = "without-namespace", victim = "a/b", "rarer");
}

#[test]
fn text_is_klogs() {
    let options = Options { verbosity: Verbosity(2), ..options(Format::Text) };
    let (info, error) = logged(options, samples);
    assert_eq!(info, "");
    check_lines(
        &error,
        &expect![[r#"
            I1130 12:34:56.789012     PID tests.rs:N] "bound" pod="default/web-0" node="n\"1" n=3 load=0.5 ok=true
            W1130 12:34:56.789012     PID tests.rs:N] "careful\nplease" minus=-1 list="[\"a\"]"
            E1130 12:34:56.789012     PID tests.rs:N] "the attempt failed" err="the disk is gone" pod="default/web-0"
            E1130 12:34:56.789012     PID tests.rs:N] "another" err="the disk is gone" type="odd"
            I1130 12:34:56.789012     PID tests.rs:N] "no\tfields"
            I1130 12:34:56.789012     PID tests.rs:N] "long" text=<
            	two
            	lines
             > not_a_number="NaN"
            I1130 12:34:56.789012     PID tests.rs:N] "rarer" pod="without-namespace" victim="a/b"
        "#]],
    );
}

#[test]
fn json_is_component_bases() {
    let options = Options { verbosity: Verbosity(2), ..options(Format::Json) };
    let (info, error) = logged(options, samples);
    assert_eq!(info, "");
    for line in error.lines() {
        serde_json::from_str::<serde_json::Value>(line).unwrap();
    }
    check_lines(
        &error,
        &expect![[r#"
            {"ts":1796038496789.012,"caller":"logs/tests.rs:N","msg":"bound","v":0,"pod":{"name":"web-0","namespace":"default"},"node":"n\"1","n":3,"load":0.5,"ok":true}
            {"ts":1796038496789.012,"caller":"logs/tests.rs:N","msg":"careful\nplease","v":0,"minus":-1,"list":"[\"a\"]"}
            {"ts":1796038496789.012,"caller":"logs/tests.rs:N","msg":"the attempt failed","pod":{"name":"web-0","namespace":"default"},"err":"the disk is gone"}
            {"ts":1796038496789.012,"caller":"logs/tests.rs:N","msg":"another","type":"odd","err":"the disk is gone"}
            {"ts":1796038496789.012,"caller":"logs/tests.rs:N","msg":"no\tfields","v":0}
            {"ts":1796038496789.012,"caller":"logs/tests.rs:N","msg":"long","v":0,"text":"two\nlines","not_a_number":"NaN"}
            {"ts":1796038496789.012,"caller":"logs/tests.rs:N","msg":"rarer","v":2,"pod":"without-namespace","victim":{"name":"b","namespace":"a"}}
        "#]],
    );
}

#[test]
fn logs_alone_make_no_spans() {
    logged(Options { verbosity: Verbosity(10), ..options(Format::Text) }, || {
        assert!(tracing::info_span!("unseen").is_disabled());
    });
}

#[test]
fn human_lines_have_colours_only_when_asked() {
    let say = || tracing::info!(n = 1, "hello");
    let (_, plain) = logged(options(Format::Human), say);
    assert!(plain.contains("hello n=1") && !plain.contains('\x1b'), "{plain}");
    let (_, coloured) = logged(Options { colour: true, ..options(Format::Human) }, say);
    assert!(coloured.contains("\x1b["), "{coloured}");
}

#[test]
fn streams_are_split_when_asked() {
    let routing = Routing { split_stream: true, info_buffer_size: Size::bytes(1 << 20) };
    let say = || {
        tracing::info!("i");
        tracing::warn!("w");
        tracing::error!("e");
    };
    let messages = |text: &str| -> String {
        ["\"i\"", "\"w\"", "\"e\""].into_iter().filter(|m| text.contains(m)).collect()
    };
    // klog routes by the line's letter, JSON knows errors only.
    let cases = [
        (Format::Text, "\"i\"", "\"w\"\"e\""),
        (Format::Json, "\"i\"\"w\"", "\"e\""),
        (Format::Human, "", ""),
    ];
    for (format, expected_info, expected_error) in cases {
        let options = Options { text: routing, json: routing, ..options(format) };
        let (info, error) = logged(options, say);
        assert_eq!(messages(&info), expected_info, "{format}");
        assert_eq!(messages(&error), expected_error, "{format}");
    }
}

/// One line of each verbosity, and those of other crates.
fn ladder() {
    tracing::info!("v0");
    tracing::info!(v = 2, "v2");
    tracing::debug!("v4");
    tracing::debug!(v = 5, "v5");
    tracing::trace!("v7");
    tracing::trace!(v = 10, "v10");
    tracing::error!(v = 10, "always");
    tracing::info!(target: "other::part", "o-info");
    tracing::warn!(target: "other::part", "o-warn");
    tracing::warn!(target: "kube_client::client", "k-warn");
    tracing::error!(target: "kube_client::client", "k-error");
    tracing::error!(target: "kube_client::client::builder", "k-off");
}

#[track_caller]
fn check_ladder(verbosity: u32, vmodule: &str, expected: &str) {
    let vmodule = vmodule.parse().unwrap();
    let verbosity = Verbosity(verbosity);
    let (_, found) = logged(Options { verbosity, vmodule, ..options(Format::Text) }, ladder);
    let messages: Vec<_> = found.lines().filter_map(|line| line.split('"').nth(1)).collect();
    assert_eq!(messages.join(" "), expected, "-v={verbosity}");
}

#[test]
fn verbosity_is_klogs() {
    check_ladder(0, "", "v0 always o-warn k-error");
    check_ladder(1, "", "v0 always o-warn k-error");
    check_ladder(2, "", "v0 v2 always o-warn k-error");
    check_ladder(4, "", "v0 v2 v4 always o-warn k-error");
    check_ladder(6, "", "v0 v2 v4 v5 always o-warn k-error");
    check_ladder(7, "", "v0 v2 v4 v5 v7 always o-warn k-error");
    check_ladder(10, "", "v0 v2 v4 v5 v7 v10 always o-warn k-error");
}

#[test]
fn vmodule_raises_the_verbosity_of_what_it_names() {
    check_ladder(0, "tests=4", "v0 v2 v4 always o-info o-warn k-warn k-error k-off");
    check_ladder(0, "elsewhere=9", "v0 always o-warn k-error");
    check_ladder(4, "tests=0", "v0 v2 v4 always o-info o-warn k-warn k-error k-off");
}

#[test]
fn verbosity_changes_while_the_program_runs() {
    let paper = Paper::default();
    let streams = Streams { info: Box::new(io::sink()), error: Box::new(paper.clone()) };
    let (layer, control) = layer(options(Format::Text), streams).unwrap();
    tracing::subscriber::with_default(Registry::default().with(vec![layer]), || {
        let say = |n: u32| tracing::debug!(n, "said");
        say(1);
        control.set_verbosity(Verbosity(4));
        say(2);
        control.set_verbosity(Verbosity(3));
        say(3);
    });
    control.flush();
    let found = paper.text();
    assert!(found.ends_with("\"said\" n=2\n") && found.lines().count() == 1, "{found}");
}

/// A stream that does not move until it is let.
#[derive(Clone, Default)]
struct Jam(Arc<(Mutex<bool>, Condvar)>, Paper);

impl Jam {
    fn clear(&self) {
        *self.0.0.lock() = true;
        self.0.1.notify_all();
    }
}

impl Write for Jam {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let (is_clear, signal) = &*self.0;
        signal.wait_while(&mut is_clear.lock(), |is_clear| !*is_clear);
        self.1.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_stream_that_does_not_move_holds_nobody_up() {
    let jam = Jam::default();
    let streams = Streams { info: Box::new(io::sink()), error: Box::new(jam.clone()) };
    let (layer, control) = layer(options(Format::Text), streams).unwrap();
    let text = "x".repeat(1 << 20);
    tracing::subscriber::with_default(Registry::default().with(vec![layer]), || {
        // More than fits; would never end if it waited.
        for _ in 0..20 {
            tracing::info!("{text}");
        }
        jam.clear();
        control.flush();
        tracing::info!("and on");
    });
    control.flush();
    let found = jam.1.text();
    assert!(found.contains("log lines were dropped, the stream is too slow\" n="), "no complaint");
    assert!(found.ends_with("\"and on\"\n"), "no more lines");
    assert!(found.lines().count() < 20, "nothing was dropped");
}

#[test]
fn a_stream_that_does_not_block_loses_nothing() {
    /// Takes a few bytes every other time.
    struct Reluctant(bool, Paper);
    impl Write for Reluctant {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0 = !self.0;
            match self.0 {
                true => Err(io::ErrorKind::WouldBlock.into()),
                false => self.1.write(&bytes[..bytes.len().min(40)]),
            }
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let paper = Paper::default();
    let reluctant = Reluctant(false, paper.clone());
    let streams = Streams { info: Box::new(io::sink()), error: Box::new(reluctant) };
    let (layer, control) = layer(options(Format::Text), streams).unwrap();
    tracing::subscriber::with_default(Registry::default().with(vec![layer]), || {
        for n in 0..5 {
            tracing::info!(n, "said");
        }
    });
    control.flush();
    let text = paper.text();
    assert!((0..5).all(|n| text.contains(&format!("\"said\" n={n}\n"))), "{text}");
}

#[test]
fn a_closed_stream_is_borne() {
    struct Closed;
    impl Write for Closed {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            Err(io::ErrorKind::BrokenPipe.into())
        }
        fn flush(&mut self) -> io::Result<()> {
            Err(io::ErrorKind::BrokenPipe.into())
        }
    }
    let streams = Streams { info: Box::new(Closed), error: Box::new(Closed) };
    let (layer, control) = layer(options(Format::Text), streams).unwrap();
    tracing::subscriber::with_default(Registry::default().with(vec![layer]), || {
        for _ in 0..3 {
            tracing::error!("nobody hears");
            control.flush();
        }
    });
}

#[test]
fn buffered_lines_are_written_in_the_end() {
    let paper = Paper::default();
    let routing = Routing { split_stream: true, info_buffer_size: Size::bytes(1 << 16) };
    let options = Options {
        text: routing,
        flush_frequency: Duration::from_millis(1),
        ..options(Format::Text)
    };
    let streams = Streams { info: Box::new(paper.clone()), error: Box::new(io::sink()) };
    let (layer, _control) = layer(options, streams).unwrap();
    tracing::subscriber::with_default(Registry::default().with(vec![layer]), || {
        tracing::info!("one line");
    });
    for _ in 0..1000 {
        if !paper.text().is_empty() {
            return;
        }
        // Real time: the writer has a thread of its own and waits for the clock.
        thread::sleep(Duration::from_millis(10));
    }
    panic!("not written without a flush");
}

#[test]
fn gated_options_are_named() {
    let routing = Routing { split_stream: true, info_buffer_size: Size::bytes(1) };
    let asked = Options { text: routing, json: routing, ..options(Format::Json) };
    let flags = |gates| asked.gated(gates).iter().map(ToString::to_string).collect::<Vec<_>>();
    assert_eq!(flags(Gates { alpha: true, beta: true }), Vec::<String>::new());
    let none = flags(Gates { alpha: false, beta: false });
    assert_eq!(none.len(), 5);
    assert_eq!(none[0], "--logging-format=json needs --feature-gates=LoggingBetaOptions=true");
    assert_eq!(
        flags(Gates::default())[0],
        "--log-text-split-stream needs --feature-gates=LoggingAlphaOptions=true"
    );
    assert_eq!(options(Format::Text).gated(Gates { alpha: false, beta: false }), []);
}

#[test]
fn values_of_flags_are_checked() {
    let level = |text: &str| text.parse::<Verbosity>().ok().map(Verbosity::get);
    for (text, expected) in [
        ("0", Some(0)),
        ("2147483647", Some(2_147_483_647)),
        ("2147483648", None),
        ("-1", None),
        ("+1", None),
        ("", None),
        ("debug", None),
    ] {
        assert_eq!(level(text), expected, "{text}");
    }
    let size = |text: &str| text.parse::<Size>().ok().map(Size::get);
    for (text, expected) in [
        ("0", Some(0)),
        ("512", Some(512)),
        ("1K", Some(1000)),
        ("2Ki", Some(2048)),
        ("3M", Some(3_000_000)),
        ("4G", Some(2 << 30)),
        ("1Mi", Some(1 << 20)),
        ("99999999999999999Gi", Some(2 << 30)),
        ("-1", None),
        ("Ki", None),
        ("1 K", None),
    ] {
        assert_eq!(size(text), expected, "{text}");
    }
    let error = "klog".parse::<Format>().unwrap_err().to_string();
    assert_eq!(error, r#"--logging-format: "klog" is not one of "text", "json", "human""#);
}
