//! `/flagz`: the command line's flags and their values.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::sync::Arc;

use serde::Serialize;

use super::accept::{Format, negotiate};
use super::{Metadata, WARNING, structured};
use crate::page::{Page, PageError, PageRequest, Reply, page};

/// Stands for values that must not be shown.
const CLASSIFIED: &str = "CLASSIFIED";

/// What `/flagz` tells.
#[derive(Clone, Debug, Default)]
pub struct Flagz {
    /// The component, as `kube-scheduler`.
    pub component: String,
    /// Every flag, set or not, without its dashes, with its value.
    pub flags: BTreeMap<String, String>,
    /// Flags whose values are not shown.
    pub classified: BTreeSet<String>,
}

/// The page of it.
#[must_use]
pub fn flagz(mut flags: Flagz) -> Arc<dyn Page> {
    for name in &flags.classified {
        if let Some(value) = flags.flags.get_mut(name) {
            CLASSIFIED.clone_into(value);
        }
    }
    page(move |request| flags.render(request))
}

impl Flagz {
    fn render(&self, request: &PageRequest) -> Result<Reply, PageError> {
        match negotiate(request.accept(), "Flagz")? {
            Format::Text => {
                let mut text = format!("\n{} flagz\n{WARNING}\n", self.component);
                for (name, value) in &self.flags {
                    // Writing to a string cannot fail.
                    let _ = writeln!(text, "{name}={value}");
                }
                Ok(Reply::text(text))
            }
            Format::Structured { encoding, version } => {
                let form = Form {
                    kind: "Flagz",
                    api_version: version.api_version(),
                    metadata: Metadata { name: &self.component },
                    flags: &self.flags,
                };
                structured(&form, encoding, version, "flagz")
            }
        }
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Form<'a> {
    kind: &'static str,
    api_version: &'static str,
    metadata: Metadata<'a>,
    flags: &'a BTreeMap<String, String>,
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};
    use futures::FutureExt;

    use super::*;

    #[track_caller]
    fn check(accept: Option<&str>, expected: &Expect) {
        let flags = [("v", "2"), ("leader-elect", "true"), ("token", "s3cret")];
        let page = flagz(Flagz {
            component: "kube-scheduler".to_owned(),
            flags: flags.map(|(name, value)| (name.to_owned(), value.to_owned())).into(),
            classified: ["token".to_owned(), "unknown".to_owned()].into(),
        });
        let request = PageRequest::new("", accept);
        let reply = page.render(&request).now_or_never().unwrap().unwrap();
        expected.assert_eq(std::str::from_utf8(&reply.body).unwrap());
    }

    #[test]
    fn flags_are_sorted_and_secrets_hidden() {
        check(
            None,
            &expect![[r#"

                kube-scheduler flagz
                Warning: This endpoint is not meant to be machine parseable, has no formatting compatibility guarantees and is for debugging purposes only.
                leader-elect=true
                token=CLASSIFIED
                v=2
            "#]],
        );
        check(
            Some("application/json;v=v1beta1;g=config.k8s.io;as=Flagz"),
            &expect![[
                r#"{"kind":"Flagz","apiVersion":"config.k8s.io/v1beta1","metadata":{"name":"kube-scheduler"},"flags":{"leader-elect":"true","token":"CLASSIFIED","v":"2"}}"#
            ]],
        );
    }
}
