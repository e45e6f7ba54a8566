//! New objects.

use std::sync::Arc;

use serde_json::Value;
use steersman_apimachinery::error::ApiError;
use steersman_apimachinery::rules::Part;

use super::{Writer, namespaces};
use crate::access::escalation;
use crate::clock::rfc3339;
use crate::meta;
use crate::store::{Stored, Write, key};

/// How many generated names are tried.
const ATTEMPTS: usize = 8;

impl Writer<'_> {
    /// Creates an object, given in the version that is written, in a namespace
    /// (empty for resources without).
    pub(crate) fn create(&self, namespace: &str, object: Value) -> Result<Arc<Stored>, ApiError> {
        self.create_managed(namespace, object, false)
    }

    /// As [`Self::create`], for an object whose `managedFields` already say who
    /// owns what.
    pub(crate) fn create_applied(
        &self,
        namespace: &str,
        object: Value,
    ) -> Result<Arc<Stored>, ApiError> {
        self.create_managed(namespace, object, true)
    }

    fn create_managed(
        &self,
        namespace: &str,
        mut object: Value,
        is_managed: bool,
    ) -> Result<Arc<Stored>, ApiError> {
        let resource = self.entry.resource;
        if !meta::text(&object, "resourceVersion").is_empty() {
            return Err(ApiError::bad_request(
                "resourceVersion should not be set on objects to be created",
            ));
        }
        if resource.namespaced {
            let given = meta::namespace(&object);
            if !given.is_empty() && given != namespace {
                return Err(ApiError::bad_request(
                    "the namespace of the provided object does not match the namespace sent on the request",
                ));
            }
            meta::set(&mut object, "namespace", Value::from(namespace));
            self.check_namespace(namespace, meta::name(&object))?;
        } else {
            meta::set(&mut object, "namespace", Value::Null);
        }
        let base = meta::text(&object, "generateName").to_owned();
        if !meta::name(&object).is_empty() || base.is_empty() {
            return self.create_once(object, is_managed);
        }
        let mut attempt = 1;
        loop {
            let mut named = object.clone();
            let name = meta::generated_name(&base, self.server.random());
            meta::set(&mut named, "name", Value::from(name));
            match self.create_once(named, is_managed) {
                Err(error) if error.reason == "AlreadyExists" && attempt < ATTEMPTS => attempt += 1,
                answer => return answer,
            }
        }
    }

    fn create_once(&self, object: Value, is_managed: bool) -> Result<Arc<Stored>, ApiError> {
        let (resource, table) = (self.entry.resource, self.table()?);
        let object = self.prepare_new(object, is_managed)?;
        let name = meta::name(&object).to_owned();
        let key = key(meta::namespace(&object), &name);
        if self.dry_run {
            return match self.server.store.get(table, &key) {
                Some(_) => Err(ApiError::already_exists(resource, &name)),
                None => Ok(Stored::unstored(object)),
            };
        }
        let written = self.server.store.commit(table, &key, None, Write::Put(object));
        written.map_err(|_| ApiError::already_exists(resource, &name))
    }

    /// The object as it will be stored, admitted and found valid.
    fn prepare_new(&self, mut object: Value, is_managed: bool) -> Result<Value, ApiError> {
        let (resource, rules) = (self.entry.resource, self.entry.storage.rules);
        for field in ["selfLink", "deletionTimestamp", "deletionGracePeriodSeconds", "generation"] {
            meta::set(&mut object, field, Value::Null);
        }
        if !is_managed {
            meta::set(&mut object, "managedFields", Value::Null);
        }
        meta::set(&mut object, "uid", Value::from(self.server.uid()));
        meta::set(&mut object, "creationTimestamp", Value::from(rfc3339(self.now)));
        if self.keeps_generation() {
            meta::set(&mut object, "generation", Value::from(1));
        }
        let mut object = resource.rules.to_storage(object);
        rules.default(&mut object);
        rules.prepare_create(&mut object, &self.request())?;
        if namespaces::are_namespaces(resource) {
            namespaces::prepare(&mut object);
        }
        let mut finalizers: Vec<String> =
            meta::finalizers(&object).into_iter().map(str::to_owned).collect();
        for finalizer in rules.finalizers() {
            if !finalizers.iter().any(|have| have == finalizer) {
                finalizers.push((*finalizer).to_owned());
            }
        }
        meta::set_finalizers(&mut object, &finalizers);
        escalation::check(self.server, self.user, self.entry.storage, &object, None)?;
        let mut errors = meta::check_create(resource, &object);
        errors.extend(rules.validate(&object, None, Part::Main));
        if !errors.is_empty() {
            let named = match meta::name(&object) {
                "" => meta::text(&object, "generateName"),
                name => name,
            };
            return Err(ApiError::invalid(resource, named, &errors));
        }
        if !is_managed {
            self.own_changes(&mut object, None, Part::Main);
        }
        Ok(object)
    }
}
