//! Complete lists, page by page: for API servers that do not send initial
//! events with a watch.

use serde::Deserialize;
use tokio::task::{spawn_blocking, yield_now};
use tokio::time::sleep;

use super::lean::Lean;
use super::{Reflector, Trouble};
use crate::api::{Call, CallError};

/// How many objects a page holds, as in the reference's client.
const PAGE: u32 = 500;
/// How often a page after the first one is tried.
const TRIES: u32 = 5;
/// So many objects are decoded before other tasks get their turn.
const STRETCH: usize = 16;

#[derive(Deserialize)]
struct Page {
    #[serde(default)]
    kind: String,
    #[serde(default)]
    metadata: PageMeta,
    #[serde(default)]
    items: Option<Vec<Lean>>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct PageMeta {
    resource_version: String,
    #[serde(rename = "continue")]
    next: String,
}

impl Reflector {
    /// Lists everything; afterwards a watch can go on from there.
    pub(super) async fn list(&mut self) -> Result<(), Trouble> {
        match self.list_pages(Some(PAGE)).await {
            // The list took so long that its version is forgotten. All at once
            // needs no memory of the server.
            Err(Trouble::Expired) => self.list_pages(None).await,
            other => other,
        }
    }

    async fn list_pages(&mut self, limit: Option<u32>) -> Result<(), Trouble> {
        self.store.begin_list();
        let mut next = String::new();
        loop {
            let page = self.page(limit, &next).await?;
            for (i, Lean(item)) in page.items.unwrap_or_default().iter().enumerate() {
                self.store.upsert(item, &mut self.events);
                if i % STRETCH == STRETCH - 1 {
                    yield_now().await;
                }
            }
            next = page.metadata.next;
            if next.is_empty() {
                self.store.end_list(&mut self.events);
                self.listed(page.metadata.resource_version).await?;
                return Ok(());
            }
            self.flush().await?;
        }
    }

    /// Reads a page. One that fails is asked for again: starting the list anew
    /// would cost all pages before it.
    async fn page(&mut self, limit: Option<u32>, next: &str) -> Result<Page, Trouble> {
        for _ in 1..TRIES {
            match self.try_page(limit, next).await {
                Err(Trouble::Call(error)) if error.may_pass() && !next.is_empty() => {
                    let wait = error.retry_after().unwrap_or_else(|| self.backoff.wait());
                    self.complain(&error, wait);
                    sleep(wait).await;
                }
                other => return other,
            }
        }
        self.try_page(limit, next).await
    }

    async fn try_page(&self, limit: Option<u32>, next: &str) -> Result<Page, Trouble> {
        let mut query = Vec::new();
        query.extend(limit.map(|limit| format!("limit={limit}")));
        query.extend(self.selector.map(|selector| format!("fieldSelector={selector}")));
        if !next.is_empty() {
            query.push(format!("continue={}", escaped(next)));
        }
        let path = self.row.path();
        let path = match query.is_empty() {
            true => path,
            false => format!("{path}?{}", query.join("&")),
        };
        let bytes = self.api.bytes(Call::get(path).within(self.limits.list)).await?;
        // A page has megabytes: too much work between two other tasks' turns.
        let parsed = spawn_blocking(move || serde_json::from_slice(&bytes)).await;
        let garbled = |text: String| Trouble::Call(CallError::Garbled(text));
        let parsed = parsed.map_err(|error| garbled(error.to_string()))?;
        let page: Page = parsed.map_err(|error: serde_json::Error| garbled(error.to_string()))?;
        // Something else that answers in the API server's place must not pass
        // for a list of nothing: everything would be taken as deleted.
        if !page.kind.ends_with("List") || page.metadata.resource_version.is_empty() {
            return Err(garbled(format!("a {:?} in place of a list", page.kind)));
        }
        Ok(page)
    }
}

/// Tokens are opaque: everything that means something in a query is escaped.
pub(super) fn escaped(token: &str) -> String {
    let mut text = String::with_capacity(token.len());
    for byte in token.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => {
                text.push(char::from(byte));
            }
            other => {
                text.push('%');
                text.push(hex(other >> 4));
                text.push(hex(other & 15));
            }
        }
    }
    text
}

fn hex(digit: u8) -> char {
    char::from_digit(u32::from(digit), 16).unwrap_or('0').to_ascii_uppercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_are_escaped() {
        assert_eq!(escaped("aZ9-_.~"), "aZ9-_.~");
        assert_eq!(escaped("a+b/c=&?\u{e9}"), "a%2Bb%2Fc%3D%26%3F%C3%A9");
    }
}
