//! The file that tells kubectl how to reach the playground.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::json;

/// The name of the context, the cluster and the user.
pub const CONTEXT: &str = "steersman-playground";

/// A kubeconfig, in JSON, which is YAML too. It holds the token.
pub(crate) fn text(url: &str, ca_pem: &str, token: &str) -> String {
    let config = json!({
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": CONTEXT,
        "clusters": [{ "name": CONTEXT, "cluster": {
            "server": url,
            "certificate-authority-data": STANDARD.encode(ca_pem),
        }}],
        "users": [{ "name": CONTEXT, "user": { "token": token } }],
        "contexts": [{ "name": CONTEXT, "context": {
            "cluster": CONTEXT,
            "user": CONTEXT,
            "namespace": "default",
        }}],
        "preferences": {},
    });
    format!("{config:#}\n")
}
