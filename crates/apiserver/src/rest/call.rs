//! One request of one resource.

use std::cell::RefCell;
use std::sync::Arc;

use http::{Response, header};
use jiff::Timestamp;
use serde_json::Value;
use steersman_apimachinery::error::ApiError;
use steersman_apimachinery::resource::Resource;

use super::body::{self, Document, Expected, FieldValidation};
use super::negotiate::{Form, Offer, Shape, Syntax, negotiate};
use super::path::ResourcePath;
use super::query::Query;
use super::respond::{self, Body};
use super::table::{Include, Table, partial};
use super::{Incoming, method_not_allowed};
use crate::access::{Attributes, Target};
use crate::registry::Entry;
use crate::server::Inner;
use crate::store::{Stored, TableId};
use crate::writes::Writer;

/// The longest name of a field manager.
const LONGEST_MANAGER: usize = 128;

/// One request of one resource.
pub(crate) struct Call<'a> {
    pub(crate) request: &'a Incoming<'a>,
    pub(crate) server: &'a Inner,
    pub(crate) entry: &'a Entry,
    pub(crate) resource: &'static Resource,
    pub(crate) path: &'a ResourcePath,
    pub(crate) query: &'a Query,
    pub(crate) form: Form,
    pub(crate) now: Timestamp,
    /// What the client should be told of beside the answer.
    pub(crate) warnings: RefCell<Vec<String>>,
}

impl<'a> Call<'a> {
    pub(super) fn new(
        request: &'a Incoming<'a>,
        entry: &'a Entry,
        path: &'a ResourcePath,
        query: &'a Query,
    ) -> Result<Self, ApiError> {
        let server = &*request.server.inner;
        Ok(Self {
            request,
            server,
            entry,
            resource: entry.resource,
            path,
            query,
            form: negotiate(request.accept().as_deref(), Offer::Objects)?,
            now: server.now(),
            warnings: RefCell::default(),
        })
    }

    /// The resource's table.
    pub(crate) fn table(&self) -> Result<TableId, ApiError> {
        self.entry.table.ok_or_else(method_not_allowed)
    }

    /// The namespace that was named, or `None` for all.
    pub(crate) fn namespace(&self) -> Option<&'a str> {
        Some(self.path.namespace.as_str()).filter(|namespace| !namespace.is_empty())
    }

    /// Refuses what the user may not do to the object beside what the request
    /// is for: a write that turns out to create.
    pub(super) fn check(&self, verb: &str) -> Result<(), ApiError> {
        let target = Target::Resource {
            group: &self.path.group,
            resource: &self.path.plural,
            subresource: "",
            namespace: &self.path.namespace,
            name: &self.path.name,
        };
        let asked = Attributes { verb, target };
        self.server.access.check(&self.server.store, self.request.user, &asked)
    }

    /// Writes in the name of who asks.
    pub(super) fn writer(&self) -> Result<Writer<'_>, ApiError> {
        Ok(Writer {
            server: self.server,
            entry: self.entry,
            user: self.request.user,
            now: self.now,
            dry_run: self.query.dry_run()?,
            manager: self.manager()?,
        })
    }

    /// The field manager: the one named, or the first word of the user agent.
    fn manager(&self) -> Result<&str, ApiError> {
        let named = self.query.text("fieldManager");
        if named.len() > LONGEST_MANAGER {
            let message =
                format!("fieldManager: Too long: may not be more than {LONGEST_MANAGER} bytes");
            return Err(ApiError::new(422, "Invalid", message));
        }
        if named.chars().any(char::is_control) {
            let message = format!(
                "fieldManager: Invalid value: {named:?}: should only contain printable characters"
            );
            return Err(ApiError::new(422, "Invalid", message));
        }
        if !named.is_empty() {
            return Ok(named);
        }
        let agent = self.request.header(header::USER_AGENT);
        let first = agent.split('/').next().unwrap_or("");
        let end = first.char_indices().nth(LONGEST_MANAGER).map_or(first.len(), |(at, _)| at);
        Ok(if first.is_empty() { "unknown" } else { &first[..end] })
    }

    /// The body as an object of this resource.
    pub(super) fn object(&self) -> Result<Value, ApiError> {
        self.conform(self.document()?)
    }

    /// The body, whatever it is.
    pub(super) fn document(&self) -> Result<Document, ApiError> {
        body::read(self.request.body, self.request.header(header::CONTENT_TYPE))
    }

    /// A document as an object of this resource.
    pub(super) fn conform(&self, document: Document) -> Result<Value, ApiError> {
        let api_version = self.resource.api_version();
        self.conform_to(
            document,
            Expected {
                api_version: &api_version,
                kind: self.resource.kind,
                schema: self.resource.schema,
            },
        )
    }

    /// A document as an object of another kind.
    pub(super) fn conform_to(
        &self,
        document: Document,
        expected: Expected<'_>,
    ) -> Result<Value, ApiError> {
        let validation = FieldValidation::parse(self.query.text("fieldValidation"))?;
        body::conform(document, expected, validation, &mut self.warnings.borrow_mut())
    }

    /// Whether objects are stored in the form of this version.
    pub(crate) fn is_own_form(&self) -> bool {
        std::ptr::eq(self.resource, self.entry.storage)
    }

    /// A stored object in this version, with all of its metadata.
    pub(crate) fn shown(&self, stored: &Stored) -> Value {
        let full = stored.full();
        if self.is_own_form() { full } else { self.resource.rules.from_storage(&full) }
    }

    /// How tables are made for this request.
    pub(crate) fn tables(&self, version: &'static str) -> Result<Table, ApiError> {
        let include = Include::parse(self.query.text("includeObject"))?;
        Ok(Table { resource: self.resource, version, include, now: self.now })
    }

    /// The answer that is this object.
    pub(super) fn respond(
        &self,
        status: u16,
        stored: &Arc<Stored>,
    ) -> Result<Response<Body>, ApiError> {
        if self.form.shape == Shape::Whole
            && self.form.syntax == Syntax::Json
            && self.is_own_form()
            && !self.is_pretty()
        {
            return Ok(respond::bytes(status, "application/json", stored.json.clone()));
        }
        let object = self.shown(stored);
        let shown = match self.form.shape {
            Shape::Table(version) => {
                let table = self.tables(version)?;
                let metadata = serde_json::json!({
                    "resourceVersion": crate::meta::text(&object, "resourceVersion"),
                });
                table.document(vec![table.row(&object)], metadata, true)
            }
            Shape::Metadata(version) => partial(&object, version),
            Shape::Whole | Shape::Discovery(_) => object,
        };
        Ok(self.respond_value(status, &shown))
    }

    /// The answer that is this value, whatever shape was asked for.
    pub(super) fn respond_value(&self, status: u16, value: &Value) -> Response<Body> {
        if self.form.syntax == Syntax::Json && self.is_pretty() {
            let text = format!("{value:#}\n");
            return respond::bytes(status, "application/json", text.into());
        }
        respond::value(status, value, self.form.syntax)
    }

    /// Whether a person reads the answer.
    pub(super) fn is_pretty(&self) -> bool {
        self.query.maybe_flag("pretty").unwrap_or_else(|| {
            let agent = self.request.header(header::USER_AGENT);
            ["curl", "Wget", "Mozilla/5.0"].iter().any(|person| agent.starts_with(person))
        })
    }
}
