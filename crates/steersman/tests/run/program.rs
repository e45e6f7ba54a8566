//! The program when it ends by itself.

use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::Duration;

/// Runs a program that ends by itself, and fails when it does not.
pub(crate) fn output(program: &Path, args: &[&str]) -> Output {
    let mut child = Command::new(program)
        .args(args)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program is run");
    for _ in 0..600 {
        if child.try_wait().expect("it is waited for").is_some() {
            return child.wait_with_output().expect("its output");
        }
        // Real time: another process is at work.
        std::thread::sleep(Duration::from_millis(50));
    }
    let _ = child.kill();
    let output = child.wait_with_output().expect("its output");
    panic!("{args:?} does not end: {}", String::from_utf8_lossy(&output.stderr));
}
