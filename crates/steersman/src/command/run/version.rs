//! What `--version` prints.

use std::io::{self, Write};

use serde_json::json;

use super::flags::VersionWish;
use super::flags::value::Release;

/// Prints what is wished; whether something was.
pub(super) fn print(wish: Option<VersionWish>) -> anyhow::Result<bool> {
    let version = env!("CARGO_PKG_VERSION");
    let text = match wish {
        None | Some(VersionWish::No) => return Ok(false),
        Some(VersionWish::Line) => {
            format!("Steersman v{version} (kube-scheduler v{})\n", Release::REFERENCE)
        }
        Some(VersionWish::Raw) => {
            let all = json!({
                "version": format!("v{version}"),
                "kubeScheduler": format!("v{}", Release::REFERENCE),
                "platform": format!("{}/{}", std::env::consts::OS, std::env::consts::ARCH),
            });
            format!("{all}\n")
        }
    };
    io::stdout().write_all(text.as_bytes())?;
    Ok(true)
}
