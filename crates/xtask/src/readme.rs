//! Runs the commands that README.md promises, so that the promise stays true.
//!
//! A command is marked by a comment on a line of its own, followed by a fenced
//! block that holds the command and nothing else:
//!
//! ````text
//! <!-- ci:demo exit=0,2 -->
//! ```sh
//! cargo run -- explain cluster.yaml
//! ```
//! ````
//!
//! `exit` lists the exit codes that count as success; without it, only 0 does.
//! With `until="TEXT"` the command is one that goes on until it is ended: it gets
//! SIGTERM once it has printed a line with that text. (SIGINT would be what a
//! person sends, but machines often run their jobs with SIGINT ignored.)

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};

use crate::group::Group;
use crate::shell;

/// A command found in the README.
#[derive(Debug, PartialEq, Eq)]
struct Marked {
    /// The line of the command, counted from 1.
    line: usize,
    command: String,
    /// The exit codes that count as success.
    exit: Vec<i32>,
    /// The text after which it is ended.
    until: Option<String>,
}

/// Runs the README's test command.
pub(crate) fn run_test(root: &Path) -> Result<()> {
    let marked = read(root, "test")?;
    ensure!(
        marked.exit == [0],
        "README.md:{}: the test command may only end with exit code 0",
        marked.line
    );
    println!("    {}", marked.command);
    shell::run(&mut sh(root, &marked.command))
}

/// Runs the README's first command, which must print something.
pub(crate) fn run_demo(root: &Path) -> Result<()> {
    let marked = read(root, "demo")?;
    println!("    {}", marked.command);
    if let Some(until) = &marked.until {
        // Without exec a shell would stay in between, and die of the signal
        // whatever the program makes of it.
        let command = format!("exec {}", marked.command);
        let (code, printed) = run_until(&mut sh(root, &command), until)?;
        return check_demo(&marked, code, printed.as_bytes());
    }
    let output = sh(root, &marked.command)
        .stderr(Stdio::inherit())
        .output()
        .context("cannot start a shell")?;
    std::io::stdout().write_all(&output.stdout)?;
    check_demo(&marked, output.status.code(), &output.stdout)
}

/// Runs a command, ends it after a line with `until`, and returns its exit
/// code with what it has printed.
fn run_until(command: &mut Command, until: &str) -> Result<(Option<i32>, String)> {
    let mut group = Group::start(command.stdout(Stdio::piped()))?;
    let stdout = group.leader().stdout.take().context("the command has no output")?;
    let mut printed = String::new();
    let mut seen = false;
    for line in BufReader::new(stdout).lines() {
        let line = line?;
        println!("{line}");
        printed.push_str(&line);
        printed.push('\n');
        if !seen && line.contains(until) {
            seen = true;
            group.signal("TERM")?;
        }
    }
    let status = group.wait(Duration::from_secs(30))?;
    ensure!(seen, "the command ended with {status} and never printed {until:?}");
    Ok((status.code(), printed))
}

fn check_demo(marked: &Marked, code: Option<i32>, output: &[u8]) -> Result<()> {
    let Marked { line, command, exit, .. } = marked;
    let Some(code) = code else {
        bail!("README.md:{line}: `{command}` was killed by a signal");
    };
    ensure!(
        exit.contains(&code),
        "README.md:{line}: `{command}` ended with exit code {code}; allowed: {exit:?}"
    );
    ensure!(
        !output.trim_ascii().is_empty(),
        "README.md:{line}: `{command}` printed nothing to its standard output"
    );
    Ok(())
}

fn sh(root: &Path, command: &str) -> Command {
    let mut sh = Command::new("sh");
    sh.current_dir(root).args(["-c", command]);
    sh
}

fn read(root: &Path, name: &str) -> Result<Marked> {
    let text = std::fs::read_to_string(root.join("README.md")).context("cannot read README.md")?;
    find(&text, name)
}

/// Finds the command marked `ci:NAME`.
fn find(readme: &str, name: &str) -> Result<Marked> {
    let lines: Vec<&str> = readme.lines().map(str::trim).collect();
    let mut markers = lines
        .iter()
        .enumerate()
        .filter_map(|(index, line)| attributes(line, name).map(|attributes| (index, attributes)));
    let (index, attributes) = markers
        .next()
        .with_context(|| format!("README.md: no line holds the marker <!-- ci:{name} -->"))?;
    if let Some((again, _)) = markers.next() {
        bail!("README.md:{}: a second marker ci:{name}; one is allowed", again + 1);
    }
    let at = index + 1;
    let (exit, until) =
        read_attributes(attributes).with_context(|| format!("README.md:{at}: marker"))?;

    let after = lines.get(at..).unwrap_or_default();
    let block = match after {
        [open, block @ ..] if open.starts_with("```") => block,
        _ => bail!("README.md:{at}: the line after the marker must open a ``` block"),
    };
    match block {
        [command, close, ..] if close.starts_with("```") && !command.is_empty() => {
            Ok(Marked { line: at + 2, command: (*command).to_owned(), exit, until })
        }
        _ => bail!("README.md:{at}: the block after the marker must hold exactly one line"),
    }
}

/// What stands between `ci:NAME` and the end of the marker, if `line` is one.
fn attributes<'a>(line: &'a str, name: &str) -> Option<&'a str> {
    let inner = line.strip_prefix("<!--")?.strip_suffix("-->")?.trim();
    let rest = inner.strip_prefix("ci:")?.strip_prefix(name)?;
    (rest.is_empty() || rest.starts_with(' ')).then_some(rest.trim())
}

/// The exit codes that count as success, and the text to wait for.
fn read_attributes(attributes: &str) -> Result<(Vec<i32>, Option<String>)> {
    let (attributes, until) = match attributes.split_once("until=\"") {
        Some((before, rest)) => {
            let text = rest.strip_suffix('"').context("until=\"TEXT\" must stand last")?;
            (before.trim(), Some(text.to_owned()))
        }
        None => (attributes, None),
    };
    if attributes.is_empty() {
        return Ok((vec![0], until));
    }
    let codes = attributes.strip_prefix("exit=").with_context(|| {
        format!("{attributes:?} is not known; allowed: exit=CODE,CODE and until=\"TEXT\"")
    })?;
    let codes = codes
        .split(',')
        .map(|code| code.parse().with_context(|| format!("exit code {code:?} is not a number")))
        .collect::<Result<_>>()?;
    Ok((codes, until))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check_error(readme: &str, expected: &str) {
        assert_eq!(format!("{:#}", find(readme, "demo").unwrap_err()), expected);
    }

    #[test]
    fn finds_the_command_after_its_marker() {
        let readme = "# Title\n\n<!-- ci:demo -->\n```sh\ncargo run\n```\n";
        let expected =
            Marked { line: 5, command: "cargo run".to_owned(), exit: vec![0], until: None };
        assert_eq!(find(readme, "demo").unwrap(), expected);
    }

    #[test]
    fn takes_the_allowed_exit_codes_from_the_marker() {
        let readme = "<!-- ci:demo exit=0,2 -->\n```\ncargo run\n```\n";
        assert_eq!(find(readme, "demo").unwrap().exit, [0, 2]);
    }

    #[test]
    fn takes_the_text_to_wait_for_from_the_marker() {
        let readme = "<!-- ci:demo exit=0,130 until=\"is ready\" -->\n```\ncargo run\n```\n";
        let marked = find(readme, "demo").unwrap();
        assert_eq!((marked.exit, marked.until.as_deref()), (vec![0, 130], Some("is ready")));
    }

    #[test]
    fn a_command_is_ended_once_it_has_printed_the_text() {
        let script =
            "trap 'echo stopped; exit 7' TERM; echo it is ready; while :; do sleep 0.1; done";
        let mut command = Command::new("sh");
        let (code, printed) = run_until(command.args(["-c", script]), "is ready").unwrap();
        assert_eq!((code, printed.as_str()), (Some(7), "it is ready\nstopped\n"));
    }

    #[test]
    fn a_command_that_never_prints_the_text_is_an_error() {
        let mut command = Command::new("sh");
        let error = run_until(command.args(["-c", "echo no"]), "is ready").unwrap_err();
        let expected = "the command ended with exit status: 0 and never printed \"is ready\"";
        assert_eq!(error.to_string(), expected);
    }

    #[test]
    fn ignores_markers_of_other_names() {
        let readme = "<!-- ci:demonstration -->\n```\na\n```\n<!-- ci:demo -->\n```\nb\n```\n";
        assert_eq!(find(readme, "demo").unwrap().command, "b");
    }

    #[test]
    fn a_missing_marker_is_an_error() {
        check_error(
            "```\ncargo run\n```\n",
            "README.md: no line holds the marker <!-- ci:demo -->",
        );
    }

    #[test]
    fn a_second_marker_is_an_error() {
        let marked = "<!-- ci:demo -->\n```\na\n```\n";
        check_error(&marked.repeat(2), "README.md:5: a second marker ci:demo; one is allowed");
    }

    #[test]
    fn a_marker_without_a_block_is_an_error() {
        let expected = "README.md:1: the line after the marker must open a ``` block";
        check_error("<!-- ci:demo -->\ncargo run\n", expected);
        check_error("<!-- ci:demo -->", expected);
    }

    #[test]
    fn a_block_of_no_line_or_of_two_is_an_error() {
        let expected = "README.md:1: the block after the marker must hold exactly one line";
        for block in ["```\n```\n", "```\n\n```\n", "```\na\nb\n```\n", "```\na\n"] {
            check_error(&format!("<!-- ci:demo -->\n{block}"), expected);
        }
    }

    #[test]
    fn an_unknown_attribute_is_an_error() {
        check_error(
            "<!-- ci:demo fast -->\n```\na\n```\n",
            "README.md:1: marker: \"fast\" is not known; allowed: exit=CODE,CODE \
             and until=\"TEXT\"",
        );
        check_error(
            "<!-- ci:demo exit=ok -->\n```\na\n```\n",
            "README.md:1: marker: exit code \"ok\" is not a number: \
             invalid digit found in string",
        );
    }

    #[test]
    fn a_demo_must_end_with_an_allowed_code_and_print_something() {
        let marked = Marked { line: 3, command: "x".to_owned(), exit: vec![0, 2], until: None };
        let error = |code, output: &[u8]| {
            check_demo(&marked, code, output).map_err(|error| error.to_string())
        };
        assert_eq!(error(Some(2), b"text"), Ok(()));
        assert_eq!(
            error(Some(1), b"text"),
            Err("README.md:3: `x` ended with exit code 1; allowed: [0, 2]".to_owned())
        );
        assert_eq!(
            error(Some(0), b" \n"),
            Err("README.md:3: `x` printed nothing to its standard output".to_owned())
        );
        assert_eq!(error(None, b"text"), Err("README.md:3: `x` was killed by a signal".to_owned()));
    }
}
