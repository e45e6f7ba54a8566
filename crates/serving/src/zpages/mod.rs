//! Ready-made pages: `/statusz`, `/flagz` and `/configz`.

mod accept;
mod configz;
mod flagz;
mod statusz;

pub use configz::configz;
pub use flagz::{Flagz, flagz};
pub use statusz::{Statusz, statusz};

use serde::Serialize;

use crate::page::{JSON, PageError, Reply};
use accept::{Encoding, Version};

/// Stands below the title of both text pages.
const WARNING: &str = "Warning: This endpoint is not meant to be machine parseable, has no \
                       formatting compatibility guarantees and is for debugging purposes only.";

/// The metadata of a structured page.
#[derive(Serialize)]
struct Metadata<'a> {
    name: &'a str,
}

fn structured(
    page: &impl Serialize,
    encoding: Encoding,
    version: Version,
    endpoint: &str,
) -> Result<Reply, PageError> {
    let mut reply = match encoding {
        Encoding::Json => Reply { content_type: JSON.to_owned(), ..Reply::json(page)? },
        Encoding::Yaml => {
            let text = serde_saphyr::to_string(page)
                .map_err(|error| PageError::Failed(Box::new(error)))?;
            Reply::new("application/yaml", text)
        }
    };
    if version == Version::V1Alpha1 {
        reply.warning = Some(format!(
            "This version of the {endpoint} endpoint is deprecated. Please use a newer version."
        ));
    }
    Ok(reply)
}
