//! `/configz`: the configuration in force, as JSON by the name of its part.

use std::sync::Arc;

use serde_json::{Map, Value};

use crate::page::{Page, Reply, page};

/// The page of what `current` returns: for a scheduler one entry
/// `componentconfig`. It is called for every request, so that a configuration
/// read anew shows at once.
pub fn configz(current: impl Fn() -> Map<String, Value> + Send + Sync + 'static) -> Arc<dyn Page> {
    page(move |_| Reply::json(&current()))
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;
    use serde_json::json;

    use super::*;
    use crate::page::PageRequest;

    #[test]
    fn shows_the_configuration() {
        let config = json!({"componentconfig": {"parallelism": 16}});
        let page = configz(move || config.as_object().cloned().unwrap());
        let reply = page.render(&PageRequest::default()).now_or_never().unwrap().unwrap();
        assert_eq!(reply.body, r#"{"componentconfig":{"parallelism":16}}"#);
        assert_eq!(reply.content_type, "application/json");
    }
}
