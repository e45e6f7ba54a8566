//! The file that tells kubectl how to reach the playground.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::json;
use steersman_apiserver::tls::ClientIdentity;

/// The name of the context, the cluster and the user.
pub const CONTEXT: &str = "steersman-playground";

/// How somebody shows who they are.
pub(crate) enum Credentials<'a> {
    Token(&'a str),
    Certificate(&'a ClientIdentity),
}

/// A kubeconfig, in JSON, which is YAML too. It holds the credentials.
pub(crate) fn text(url: &str, ca_pem: &str, credentials: &Credentials<'_>) -> String {
    let user = match credentials {
        Credentials::Token(token) => json!({ "token": token }),
        Credentials::Certificate(client) => json!({
            "client-certificate-data": STANDARD.encode(&client.cert_pem),
            "client-key-data": STANDARD.encode(&client.key_pem),
        }),
    };
    let config = json!({
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": CONTEXT,
        "clusters": [{ "name": CONTEXT, "cluster": {
            "server": url,
            "certificate-authority-data": STANDARD.encode(ca_pem),
        }}],
        "users": [{ "name": CONTEXT, "user": user }],
        "contexts": [{ "name": CONTEXT, "context": {
            "cluster": CONTEXT,
            "user": CONTEXT,
            "namespace": "default",
        }}],
        "preferences": {},
    });
    format!("{config:#}\n")
}
