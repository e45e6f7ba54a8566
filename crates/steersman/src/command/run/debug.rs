//! What the scheduler knows and waits for, on pages.

use std::marker::PhantomData;
use std::sync::Arc;

use serde::Serialize;
use steersman_api::name::Name;
use steersman_runtime::Inspector;
use steersman_runtime::views::{
    AskError, BindingsView, ClusterView, Limit, NodeDetail, NominationsView, PATIENCE, QueueView,
};
use steersman_serving::{Page, PageError, PageRequest, Reply, Site, SiteError};

use super::Later;

/// Puts the views on a site, below `/debug/steersman`.
pub(super) fn pages(site: Site, inspector: &Inspector) -> Result<Site, SiteError> {
    site.page("/debug/steersman/queue", page::<QueueView>(inspector))?
        .page("/debug/steersman/nominated", page::<NominationsView>(inspector))?
        .page("/debug/steersman/bindings", page::<BindingsView>(inspector))?
        .page("/debug/steersman/cluster", page::<ClusterView>(inspector))?
        .page("/debug/steersman/node", Arc::new(NodePage(inspector.clone())))?
        .page("/debug/steersman/dump", Arc::new(DumpPage(inspector.clone())))
}

/// A view that a page can show.
trait View: Serialize + Send + Sized + 'static {
    fn look(
        inspector: &Inspector,
        limit: Limit,
    ) -> impl Future<Output = Result<Self, AskError>> + Send;
    fn text(&self) -> String;
}

impl View for QueueView {
    async fn look(inspector: &Inspector, limit: Limit) -> Result<Self, AskError> {
        inspector.queue(PATIENCE, limit).await
    }

    fn text(&self) -> String {
        self.text()
    }
}

impl View for NominationsView {
    async fn look(inspector: &Inspector, limit: Limit) -> Result<Self, AskError> {
        inspector.answer(PATIENCE, move |moment| Self::of(moment, limit)).await
    }

    fn text(&self) -> String {
        self.text()
    }
}

impl View for BindingsView {
    async fn look(inspector: &Inspector, limit: Limit) -> Result<Self, AskError> {
        inspector.answer(PATIENCE, move |moment| Self::of(moment, limit)).await
    }

    fn text(&self) -> String {
        self.text()
    }
}

impl View for ClusterView {
    async fn look(inspector: &Inspector, limit: Limit) -> Result<Self, AskError> {
        inspector.answer(PATIENCE, move |moment| Self::of(moment, limit)).await
    }

    fn text(&self) -> String {
        self.text()
    }
}

struct ViewPage<V> {
    inspector: Inspector,
    view: PhantomData<fn() -> V>,
}

fn page<V: View>(inspector: &Inspector) -> Arc<dyn Page> {
    Arc::new(ViewPage::<V> { inspector: inspector.clone(), view: PhantomData })
}

impl<V: View> Page for ViewPage<V> {
    fn render<'a>(&'a self, request: &'a PageRequest) -> Later<'a, Result<Reply, PageError>> {
        Box::pin(async {
            only(request, &["limit", "output"])?;
            let (limit, wants_json) = (limit(request)?, wants_json(request)?);
            let view = V::look(&self.inspector, limit).await.map_err(unavailable)?;
            if wants_json { Reply::json(&view) } else { Ok(Reply::text(view.text())) }
        })
    }
}

/// One node in all detail: `?name=NODE`.
struct NodePage(Inspector);

impl Page for NodePage {
    fn render<'a>(&'a self, request: &'a PageRequest) -> Later<'a, Result<Reply, PageError>> {
        Box::pin(async {
            only(request, &["limit", "name", "output"])?;
            let Some(name) = request.value("name") else {
                return Err(PageError::BadRequest("name: required, the name of a node".to_owned()));
            };
            let (limit, wants_json) = (limit(request)?, wants_json(request)?);
            let node = Name::from(name);
            let detail = self
                .0
                .answer(PATIENCE, move |moment| NodeDetail::of(moment, &node, limit))
                .await
                .map_err(unavailable)?;
            let Some(detail) = detail else {
                return Err(PageError::NotFound(format!("node {name:?} is not known")));
            };
            if wants_json { Reply::json(&detail) } else { Ok(Reply::text(detail.text())) }
        })
    }
}

/// All views at once, as text.
struct DumpPage(Inspector);

impl Page for DumpPage {
    fn render<'a>(&'a self, request: &'a PageRequest) -> Later<'a, Result<Reply, PageError>> {
        Box::pin(async {
            only(request, &["limit"])?;
            let text = self.0.dump(PATIENCE, limit(request)?).await.map_err(unavailable)?;
            Ok(Reply::text(text))
        })
    }
}

/// Refuses parameters that a page does not know, or would have to choose from.
fn only(request: &PageRequest, allowed: &[&str]) -> Result<(), PageError> {
    if let Some(unknown) = request.names().find(|name| !allowed.contains(name)) {
        let allowed = allowed.join(", ");
        let text = format!("parameter {unknown:?} is not known here, allowed: {allowed}");
        return Err(PageError::BadRequest(text));
    }
    match allowed.iter().find(|name| request.values(name).count() > 1) {
        Some(name) => Err(PageError::BadRequest(format!("{name}: given more than once"))),
        None => Ok(()),
    }
}

fn limit(request: &PageRequest) -> Result<Limit, PageError> {
    let Some(text) = request.value("limit") else { return Ok(Limit::default()) };
    match text.parse() {
        Ok(limit @ 1..=Limit::MAX) => Ok(Limit::new(limit)),
        _ => {
            let max = Limit::MAX;
            Err(PageError::BadRequest(format!("limit: found {text:?}, allowed: 1 to {max}")))
        }
    }
}

fn wants_json(request: &PageRequest) -> Result<bool, PageError> {
    match request.value("output") {
        None | Some("text") => Ok(false),
        Some("json") => Ok(true),
        Some(other) => {
            Err(PageError::BadRequest(format!("output: found {other:?}, allowed: text, json")))
        }
    }
}

fn unavailable(error: AskError) -> PageError {
    PageError::Unavailable(error.to_string())
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use steersman_api::time::Time;
    use steersman_config::Config;
    use steersman_core::{Scheduler, Setup};
    use steersman_runtime::Moment;

    use super::*;

    /// What a page answers, in words.
    async fn answer(page: &dyn Page, query: &str) -> String {
        match page.render(&PageRequest::new(query, None)).await {
            Ok(reply) => reply.content_type,
            Err(error) => error.to_string(),
        }
    }

    /// Pages about a scheduler that knows nothing.
    async fn check(page: impl Fn(&Inspector) -> Arc<dyn Page>, cases: &[(&str, &str)]) {
        let registry = steersman_plugins::table::in_tree();
        let config = Config::default_for(&registry).expect("the default is valid");
        let (scheduler, _) = Scheduler::new(Setup::new(&config, &registry)).expect("it is set up");
        let inspector = Inspector::default();
        let mut desk = inspector.desk();
        let page = page(&inspector);
        let answering = async {
            loop {
                let now = Time::from_start(Duration::ZERO);
                desk.answer(Moment { scheduler: &scheduler, now });
                tokio::task::yield_now().await;
            }
        };
        let asking = async {
            for (query, expected) in cases {
                assert_eq!(&answer(&*page, query).await, expected, "{query}");
            }
        };
        tokio::select! {
            () = asking => {}
            () = answering => {}
        }
    }

    const TEXT: &str = "text/plain; charset=utf-8";

    #[tokio::test]
    async fn a_limit_is_from_1_to_the_most_and_nothing_else() {
        let cases = [
            ("", TEXT),
            ("limit=1", TEXT),
            ("limit=5000&output=json", "application/json"),
            ("limit=0", "limit: found \"0\", allowed: 1 to 5000"),
            ("limit=5001", "limit: found \"5001\", allowed: 1 to 5000"),
            ("limit=-1", "limit: found \"-1\", allowed: 1 to 5000"),
            ("limit=", "limit: found \"\", allowed: 1 to 5000"),
            ("output=xml", "output: found \"xml\", allowed: text, json"),
        ];
        check(page::<QueueView>, &cases).await;
    }

    #[tokio::test]
    async fn parameters_that_are_not_known_or_given_twice_are_refused() {
        let unknown =
            |name, allowed| format!("parameter {name:?} is not known here, allowed: {allowed}");
        let (limits, here) = (unknown("limits", "limit, output"), unknown("name", "limit, output"));
        let cases = [
            ("limits=1", &*limits),
            ("name=n", &*here),
            ("limit=1&limit=2", "limit: given more than once"),
        ];
        check(page::<ClusterView>, &cases).await;
        let cases = [
            ("name=n&output=json", "node \"n\" is not known"),
            ("output=json", "name: required, the name of a node"),
            ("name=n&x", "parameter \"x\" is not known here, allowed: limit, name, output"),
        ];
        check(|inspector| Arc::new(NodePage(inspector.clone())), &cases).await;
        let cases = [
            ("limit=0", "limit: found \"0\", allowed: 1 to 5000"),
            ("output=json", "parameter \"output\" is not known here, allowed: limit"),
            ("limit=3", TEXT),
        ];
        check(|inspector| Arc::new(DumpPage(inspector.clone())), &cases).await;
    }
}
