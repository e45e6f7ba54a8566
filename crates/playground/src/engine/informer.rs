//! Follows all objects of one kind.

use std::pin::pin;
use std::time::Duration;

use futures::TryStreamExt;
use http::Request;
use kube::Client;
use kube::core::WatchEvent;
use serde::Deserialize;
use serde_json::Value;
use tokio::sync::mpsc;

use crate::cluster::{Kind, News};

const PAGE: usize = 500;
/// The server ends a watch after this time, so that a dead connection is
/// noticed at last.
const WATCH_SECONDS: u32 = 290;
const FIRST_DELAY: Duration = Duration::from_millis(200);
const LONGEST_DELAY: Duration = Duration::from_secs(10);

#[derive(Deserialize)]
struct Page {
    metadata: PageMeta,
    #[serde(default)]
    items: Option<Vec<Value>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct PageMeta {
    #[serde(default)]
    resource_version: String,
    #[serde(default, rename = "continue")]
    next: String,
}

/// Why a watch came to its end.
enum End {
    /// It can go on from where it was.
    Early,
    /// Everything has to be listed again.
    TooOld,
    /// Nobody listens any more.
    Unheard,
}

/// Lists the kind, watches it from there, and tells the news, until nobody
/// listens any more. What goes wrong is logged and tried again.
pub(super) async fn follow(client: Client, kind: Kind, news: mpsc::Sender<News>) {
    let mut delay = FIRST_DELAY;
    loop {
        match list(&client, kind).await {
            Ok((items, version)) => {
                delay = FIRST_DELAY;
                let number = version.parse().unwrap_or_default();
                if news.send(News::Listed(kind, items, number)).await.is_err() {
                    return;
                }
                if !watch_on(&client, kind, version, &news).await {
                    return;
                }
            }
            Err(error) => {
                tracing::warn!(kind = kind.name(), %error, "cannot list");
                tokio::time::sleep(delay).await;
                delay = (delay * 2).min(LONGEST_DELAY);
            }
        }
        if news.is_closed() {
            return;
        }
    }
}

/// Watches until a list is needed again (true) or nobody listens (false).
async fn watch_on(
    client: &Client,
    kind: Kind,
    mut version: String,
    news: &mpsc::Sender<News>,
) -> bool {
    let mut delay = FIRST_DELAY;
    loop {
        match watch(client, kind, &mut version, news).await {
            Ok(End::Early) => delay = FIRST_DELAY,
            Ok(End::TooOld) => return true,
            Ok(End::Unheard) => return false,
            Err(error) => {
                tracing::debug!(kind = kind.name(), %error, "watch broke off");
                tokio::time::sleep(delay).await;
                delay = (delay * 2).min(LONGEST_DELAY);
            }
        }
        if news.is_closed() {
            return false;
        }
    }
}

async fn list(client: &Client, kind: Kind) -> kube::Result<(Vec<Value>, String)> {
    let mut items = Vec::new();
    let mut next = String::new();
    loop {
        let mut path = format!("{}?limit={PAGE}", kind.path());
        if !next.is_empty() {
            path.push_str("&continue=");
            path.push_str(&escaped(&next));
        }
        let request = Request::get(path).body(Vec::new()).map_err(kube::Error::HttpError)?;
        let page: Page = client.request(request).await?;
        items.extend(page.items.unwrap_or_default());
        if page.metadata.next.is_empty() {
            return Ok((items, page.metadata.resource_version));
        }
        next = page.metadata.next;
    }
}

async fn watch(
    client: &Client,
    kind: Kind,
    version: &mut String,
    news: &mpsc::Sender<News>,
) -> kube::Result<End> {
    let path = format!(
        "{}?watch=true&allowWatchBookmarks=true&timeoutSeconds={WATCH_SECONDS}&resourceVersion={}",
        kind.path(),
        escaped(version),
    );
    let request = Request::get(path).body(Vec::new()).map_err(kube::Error::HttpError)?;
    let events = match client.request_events::<Value>(request).await {
        Ok(events) => events,
        Err(kube::Error::Api(status)) if status.code == 410 => return Ok(End::TooOld),
        Err(error) => return Err(error),
    };
    let mut events = pin!(events);
    loop {
        let item = match events.try_next().await? {
            Some(WatchEvent::Added(object) | WatchEvent::Modified(object)) => {
                *version = version_of(&object).unwrap_or_else(|| version.clone());
                News::Observed(kind, object)
            }
            Some(WatchEvent::Deleted(object)) => {
                *version = version_of(&object).unwrap_or_else(|| version.clone());
                News::Deleted(kind, object)
            }
            Some(WatchEvent::Bookmark(bookmark)) => {
                *version = bookmark.metadata.resource_version;
                continue;
            }
            Some(WatchEvent::Error(status)) if status.code == 410 => return Ok(End::TooOld),
            Some(WatchEvent::Error(status)) => return Err(kube::Error::Api(status)),
            None => return Ok(End::Early),
        };
        if news.send(item).await.is_err() {
            return Ok(End::Unheard);
        }
    }
}

fn version_of(object: &Value) -> Option<String> {
    Some(object.pointer("/metadata/resourceVersion")?.as_str()?.to_owned())
}

/// Continue tokens are base64 and may hold what a query must not.
fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            escaped.push(char::from(byte));
        } else {
            escaped.push_str(&format!("%{byte:02X}"));
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use http::Response;
    use kube::client::Body;
    use serde_json::json;

    use super::*;

    /// A client whose requests get these answers, one after the other, and
    /// after the last none; and the paths that it asked for.
    fn scripted(answers: Vec<(u16, String)>) -> (Client, mpsc::UnboundedReceiver<String>) {
        let (asked, paths) = mpsc::unbounded_channel();
        let mut answers = answers.into_iter();
        let service = tower::service_fn(move |request: Request<Body>| {
            let path = request.uri().path_and_query().map(ToString::to_string);
            asked.send(path.unwrap_or_default()).unwrap();
            let answer = answers.next();
            async move {
                let Some((status, body)) = answer else { return std::future::pending().await };
                let response =
                    Response::builder().status(status).body(Body::from(body.into_bytes()));
                response.map_err(|error| error.to_string())
            }
        });
        (Client::new(service, "default"), paths)
    }

    fn pod(version: u32) -> Value {
        json!({ "metadata": { "name": "p", "resourceVersion": version.to_string() } })
    }

    fn list(version: u32, next: &str, items: Vec<Value>) -> (u16, String) {
        let metadata = json!({ "resourceVersion": version.to_string(), "continue": next });
        (200, json!({ "metadata": metadata, "items": items }).to_string())
    }

    fn events(events: &[(&str, Value)]) -> (u16, String) {
        let line = |(kind, object): &(&str, Value)| {
            format!("{}\n", json!({ "type": kind, "object": object }))
        };
        (200, events.iter().map(line).collect())
    }

    fn gone() -> Value {
        json!({
            "kind": "Status", "status": "Failure", "code": 410, "reason": "Expired",
            "message": "too old resource version",
        })
    }

    /// What is told, in a word each, and the requests that were made.
    async fn follow_script(answers: Vec<(u16, String)>) -> (Vec<String>, Vec<String>) {
        let n_answers = answers.len();
        let (client, mut paths) = scripted(answers);
        let (sender, mut news) = mpsc::channel(100);
        let follower = tokio::spawn(follow(client, Kind::Pod, sender));
        let mut asked = Vec::new();
        while asked.len() <= n_answers {
            let path = paths.recv().await.unwrap();
            asked.push(
                path.replace("/api/v1/pods?", "")
                    .replace("allowWatchBookmarks=true&timeoutSeconds=290&", ""),
            );
        }
        follower.abort();
        let mut told = Vec::new();
        while let Ok(item) = news.try_recv() {
            told.push(match item {
                News::Listed(_, items, version) => format!("{} listed at {version}", items.len()),
                News::Observed(_, object) => {
                    format!("seen {}", version_of(&object).unwrap_or_default())
                }
                News::Deleted(..) => "deleted".to_owned(),
                other => format!("{other:?}"),
            });
        }
        (told, asked)
    }

    #[tokio::test(start_paused = true)]
    async fn pages_are_put_together_and_a_watch_that_ends_goes_on_from_its_bookmark() {
        let bookmark = json!({
            "apiVersion": "v1", "kind": "Pod", "metadata": { "resourceVersion": "20" },
        });
        let (told, asked) = follow_script(vec![
            list(5, "a+b=", vec![pod(1)]),
            list(5, "", vec![pod(2)]),
            events(&[("ADDED", pod(7)), ("DELETED", pod(8)), ("BOOKMARK", bookmark)]),
        ])
        .await;
        assert_eq!(told, ["2 listed at 5", "seen 7", "deleted"]);
        assert_eq!(
            asked,
            [
                "limit=500",
                "limit=500&continue=a%2Bb%3D",
                "watch=true&resourceVersion=5",
                "watch=true&resourceVersion=20"
            ]
        );
    }

    #[tokio::test(start_paused = true)]
    async fn everything_is_listed_again_when_the_version_is_too_old() {
        let (told, _) = follow_script(vec![
            list(5, "", vec![pod(1)]),
            (410, gone().to_string()),
            list(6, "", vec![]),
            events(&[("ERROR", gone())]),
            list(7, "", vec![]),
        ])
        .await;
        assert_eq!(told, ["1 listed at 5", "0 listed at 6", "0 listed at 7"]);
    }

    #[tokio::test(start_paused = true)]
    async fn failures_are_tried_again_without_a_new_list() {
        let broken = json!({ "kind": "Status", "status": "Failure", "code": 500, "message": "no" });
        let (told, asked) = follow_script(vec![
            (500, broken.to_string()),
            list(5, "", vec![]),
            (500, broken.to_string()),
            events(&[("MODIFIED", pod(9))]),
        ])
        .await;
        assert_eq!(told, ["0 listed at 5", "seen 9"]);
        assert_eq!(asked.iter().filter(|path| path.starts_with("limit")).count(), 2);
        assert_eq!(asked.last().unwrap(), "watch=true&resourceVersion=9");
    }
}
