//! Volumes and resource claims, which containers refer to by name.

use std::collections::BTreeSet;

use serde_json::Value;
use steersman_apimachinery::error::{FieldError, FieldErrorKind};

use crate::fields::{at, entries, field, items, text};
use crate::syntax::{dns_label, report};

/// Checks them, and that containers name none that is not there.
pub(super) fn check(spec: &Value, path: &str, errors: &mut Vec<FieldError>) {
    let volumes = names(spec, "volumes", path, errors);
    for (i, volume) in items(spec, "/volumes").iter().enumerate() {
        check_volume(volume, &format!("{path}.volumes[{i}]"), errors);
    }
    let claims = names(spec, "resourceClaims", path, errors);
    for (i, claim) in items(spec, "/resourceClaims").iter().enumerate() {
        check_claim(claim, &format!("{path}.resourceClaims[{i}]"), errors);
    }
    for list in ["initContainers", "containers"] {
        for (i, container) in items(spec, &format!("/{list}")).iter().enumerate() {
            let path = format!("{path}.{list}[{i}]");
            check_mounts(container, &volumes, &path, errors);
            for (n, claim) in items(container, "/resources/claims").iter().enumerate() {
                if !claims.contains(field(claim, "name")) {
                    let path = format!("{path}.resources.claims[{n}].name");
                    errors.push(not_found(path, field(claim, "name")));
                }
            }
        }
    }
}

/// The names of a list, each a label and there once.
fn names<'a>(
    spec: &'a Value,
    list: &str,
    path: &str,
    errors: &mut Vec<FieldError>,
) -> BTreeSet<&'a str> {
    let mut names = BTreeSet::new();
    for (i, item) in items(spec, &format!("/{list}")).iter().enumerate() {
        let path = format!("{path}.{list}[{i}].name");
        let name = field(item, "name");
        if name.is_empty() {
            errors.push(FieldError::required(path, ""));
            continue;
        }
        report(errors, &path, name, dns_label(name));
        if !names.insert(name) {
            errors.push(FieldError::duplicate(path, name));
        }
    }
    names
}

fn check_volume(volume: &Value, path: &str, errors: &mut Vec<FieldError>) {
    let mut sources = entries(volume, "").filter(|(name, _)| *name != "name");
    if sources.next().is_none() {
        errors.push(FieldError::required(path, "must specify a volume type"));
    }
    for (source, _) in sources {
        let why = "may not specify more than 1 volume type";
        errors.push(FieldError::forbidden(format!("{path}.{source}"), why));
    }
    let needed = [
        ("persistentVolumeClaim", "claimName"),
        ("hostPath", "path"),
        ("secret", "secretName"),
        ("configMap", "name"),
    ];
    for (source, name) in needed {
        let is_empty = text(volume, &format!("/{source}/{name}")).is_empty();
        if at(volume, &format!("/{source}")).is_some() && is_empty {
            errors.push(FieldError::required(format!("{path}.{source}.{name}"), ""));
        }
    }
}

fn check_claim(claim: &Value, path: &str, errors: &mut Vec<FieldError>) {
    let by = ["resourceClaimName", "resourceClaimTemplateName"];
    let why = match by.iter().filter(|name| !field(claim, name).is_empty()).count() {
        1 => return,
        0 => "must specify one of: `resourceClaimName`, `resourceClaimTemplateName`",
        _ => "at most one of `resourceClaimName` or `resourceClaimTemplateName` may be specified",
    };
    errors.push(FieldError::invalid(path, claim.clone(), why));
}

fn check_mounts(
    container: &Value,
    volumes: &BTreeSet<&str>,
    path: &str,
    errors: &mut Vec<FieldError>,
) {
    let mut places = BTreeSet::new();
    for (i, mount) in items(container, "/volumeMounts").iter().enumerate() {
        let path = format!("{path}.volumeMounts[{i}]");
        match field(mount, "name") {
            "" => errors.push(FieldError::required(format!("{path}.name"), "")),
            name if !volumes.contains(name) => {
                errors.push(not_found(format!("{path}.name"), name));
            }
            _ => {}
        }
        match field(mount, "mountPath") {
            "" => errors.push(FieldError::required(format!("{path}.mountPath"), "")),
            place if !places.insert(place) => {
                let why = "must be unique";
                errors.push(FieldError::invalid(format!("{path}.mountPath"), place, why));
            }
            _ => {}
        }
    }
}

fn not_found(path: String, name: &str) -> FieldError {
    FieldError {
        field: path,
        kind: FieldErrorKind::NotFound,
        found: Some(name.into()),
        detail: String::new(),
    }
}
