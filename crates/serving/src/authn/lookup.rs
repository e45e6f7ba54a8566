//! Whom the cluster trusts, from the configmap that the API server publishes.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::Api;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use thiserror::Error;

use super::proxy::ProxyHeaders;

/// Where the API server publishes it.
const NAMESPACE: &str = "kube-system";
const NAME: &str = "extension-apiserver-authentication";

/// Why the cluster's word is not known.
#[derive(Debug, Error)]
pub enum LookupError {
    /// The configmap cannot be read. The role
    /// `extension-apiserver-authentication-reader` allows it.
    #[error(
        "cannot read the configmap {NAMESPACE}/{NAME}, as the role extension-apiserver-authentication-reader of that namespace allows"
    )]
    Get(#[source] kube::Error),
    /// The API server did not answer in time.
    #[error("the configmap {NAMESPACE}/{NAME} could not be read in time")]
    TimedOut,
    /// A value is not what it should be.
    #[error("configmap {NAMESPACE}/{NAME}: data[{key:?}] is no {wanted}")]
    Value {
        /// The key.
        key: &'static str,
        /// What it should be.
        wanted: &'static str,
    },
}

/// What the cluster says.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Published {
    /// Authorities of client certificates.
    pub(super) client_ca: Vec<CertificateDer<'static>>,
    /// Authorities of the front proxy's certificate.
    pub(super) proxy_ca: Vec<CertificateDer<'static>>,
    /// Common names of it; none means any.
    pub(super) proxy_names: Vec<String>,
    /// The headers it sets.
    pub(super) proxy_headers: ProxyHeaders,
}

/// Reads the configmap.
pub(super) async fn lookup(client: &kube::Client) -> Result<Published, LookupError> {
    let api: Api<ConfigMap> = Api::namespaced(client.clone(), NAMESPACE);
    let map = api.get(NAME).await.map_err(LookupError::Get)?;
    Published::parse(&map.data.unwrap_or_default())
}

impl Published {
    fn parse(data: &BTreeMap<String, String>) -> Result<Self, LookupError> {
        Ok(Self {
            client_ca: certificates(data, "client-ca-file")?,
            proxy_ca: certificates(data, "requestheader-client-ca-file")?,
            proxy_names: list(data, "requestheader-allowed-names")?,
            proxy_headers: ProxyHeaders {
                username: list(data, "requestheader-username-headers")?,
                uid: list(data, "requestheader-uid-headers")?,
                group: list(data, "requestheader-group-headers")?,
                extra_prefixes: list(data, "requestheader-extra-headers-prefix")?,
            },
        })
    }
}

fn certificates(
    data: &BTreeMap<String, String>,
    key: &'static str,
) -> Result<Vec<CertificateDer<'static>>, LookupError> {
    let Some(text) = data.get(key).filter(|text| !text.trim().is_empty()) else {
        return Ok(Vec::new());
    };
    let certificates: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(text.as_bytes()).collect();
    certificates
        .ok()
        .filter(|certificates| !certificates.is_empty())
        .ok_or(LookupError::Value { key, wanted: "certificate in PEM format" })
}

fn list(data: &BTreeMap<String, String>, key: &'static str) -> Result<Vec<String>, LookupError> {
    let Some(text) = data.get(key).filter(|text| !text.trim().is_empty()) else {
        return Ok(Vec::new());
    };
    serde_json::from_str(text)
        .map_err(|_| LookupError::Value { key, wanted: "list of strings in JSON" })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(data: &[(&str, &str)]) -> Result<Published, String> {
        let data = data.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
        Published::parse(&data).map_err(|error| error.to_string())
    }

    #[test]
    fn an_empty_configmap_trusts_nobody() {
        assert_eq!(parse(&[]), Ok(Published::default()));
    }

    #[test]
    fn values_are_read() {
        let published = parse(&[
            ("requestheader-allowed-names", r#"["front-proxy-client"]"#),
            ("requestheader-username-headers", r#"["X-Remote-User"]"#),
            ("requestheader-extra-headers-prefix", r#"["X-Remote-Extra-"]"#),
        ]);
        let published = published.unwrap();
        assert_eq!(published.proxy_names, ["front-proxy-client"]);
        assert_eq!(published.proxy_headers.username, ["X-Remote-User"]);
        assert_eq!(published.proxy_headers.extra_prefixes, ["X-Remote-Extra-"]);
    }

    #[test]
    fn bad_values_are_named() {
        let error = parse(&[("requestheader-allowed-names", "front")]).unwrap_err();
        assert!(error.contains(r#"data["requestheader-allowed-names"] is no list"#), "{error}");
        let error = parse(&[("client-ca-file", "nonsense")]).unwrap_err();
        assert!(error.contains(r#"data["client-ca-file"] is no certificate"#), "{error}");
    }
}
