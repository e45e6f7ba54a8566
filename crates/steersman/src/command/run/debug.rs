//! What the scheduler knows and waits for, on pages.

use std::marker::PhantomData;
use std::sync::Arc;

use serde::Serialize;
use steersman_api::name::Name;
use steersman_runtime::views::{
    AskError, BindingsView, ClusterView, Limit, NodeDetail, NominationsView, PATIENCE, QueueView,
};
use steersman_runtime::{Inspector, Moment};
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
trait View: Serialize + Send + 'static {
    fn of(moment: Moment<'_>, limit: Limit) -> Self;
    fn text(&self) -> String;
}

impl View for QueueView {
    fn of(moment: Moment<'_>, limit: Limit) -> Self {
        Self::of(moment, limit)
    }

    fn text(&self) -> String {
        self.text()
    }
}

impl View for NominationsView {
    fn of(moment: Moment<'_>, limit: Limit) -> Self {
        Self::of(moment, limit)
    }

    fn text(&self) -> String {
        self.text()
    }
}

impl View for BindingsView {
    fn of(moment: Moment<'_>, limit: Limit) -> Self {
        Self::of(moment, limit)
    }

    fn text(&self) -> String {
        self.text()
    }
}

impl View for ClusterView {
    fn of(moment: Moment<'_>, limit: Limit) -> Self {
        Self::of(moment, limit)
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
            let limit = limit(request)?;
            let wants_json = wants_json(request)?;
            let view = self.inspector.answer(PATIENCE, move |moment| V::of(moment, limit)).await;
            let view = view.map_err(unavailable)?;
            if wants_json { Reply::json(&view) } else { Ok(Reply::text(view.text())) }
        })
    }
}

/// One node in all detail: `?name=NODE`.
struct NodePage(Inspector);

impl Page for NodePage {
    fn render<'a>(&'a self, request: &'a PageRequest) -> Later<'a, Result<Reply, PageError>> {
        Box::pin(async {
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
            let text = self.0.dump(PATIENCE, limit(request)?).await.map_err(unavailable)?;
            Ok(Reply::text(text))
        })
    }
}

fn limit(request: &PageRequest) -> Result<Limit, PageError> {
    match request.value("limit") {
        None => Ok(Limit::default()),
        Some(text) => text.parse().map(Limit::new).map_err(|_| {
            let max = Limit::MAX;
            PageError::BadRequest(format!("limit: found {text:?}, allowed: 1 to {max}"))
        }),
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
