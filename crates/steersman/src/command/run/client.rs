//! The way to the API server.

use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, bail};
use kube::client::{Body, ClientBuilder};
use kube::config::{Config as KubeConfig, KubeConfigOptions, Kubeconfig, KubeconfigError};
use steersman_leader_election::Fence;
use steersman_metrics::SchedulerMetrics;
use tower::util::{MapRequestLayer, option_layer};

use super::{proxy, token_file::TokenFile};

/// Where the API server is and who we are: what `kubeconfig` says, at the
/// address `master` if that is given. An empty text stands for none.
pub(super) async fn find(kubeconfig: &str, master: Option<&str>) -> anyhow::Result<KubeConfig> {
    let file = (!kubeconfig.is_empty()).then(|| Path::new(kubeconfig));
    let master = master.filter(|master| !master.is_empty());
    let address = |master: &str| {
        let uri: Option<http::Uri> = master.parse().ok().filter(has_possible_port);
        // A password in it would not go into the message.
        uri.context("--master is not the address of an API server, such as https://10.0.0.1:6443")
    };
    let mut kube = match (file, master) {
        (Some(file), _) => from_file(file).await?,
        (None, Some(master)) => KubeConfig::new(address(master)?),
        (None, None) => from_surroundings().await?,
    };
    if let Some(master) = master {
        kube.cluster_url = address(master)?;
    }
    completed(kube)
}

#[expect(clippy::disallowed_methods, reason = "the program may read its environment")]
fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

/// Whether the port, if there is one, is a port.
fn has_possible_port(uri: &http::Uri) -> bool {
    let authority = uri.authority().map(|authority| authority.as_str()).unwrap_or_default();
    let place = authority.rsplit_once('@').map_or(authority, |(_, place)| place);
    place.len() == uri.host().unwrap_or_default().len() || uri.port_u16().is_some()
}

/// What a kubeconfig says.
pub(super) async fn from_kubeconfig(file: &Path) -> anyhow::Result<KubeConfig> {
    completed(from_file(file).await?)
}

fn completed(mut kube: KubeConfig) -> anyhow::Result<KubeConfig> {
    kube.cluster_url = with_scheme(&kube)?;
    if kube.proxy_url.is_none() {
        kube.proxy_url = proxy::of_environment(&kube.cluster_url, variable)?;
    }
    // The runtime repeats requests itself, where that is safe.
    kube.default_retry = false;
    let agent = concat!("steersman/", env!("CARGO_PKG_VERSION"));
    kube.headers.push(("user-agent".parse()?, agent.parse()?));
    Ok(kube)
}

/// The API server by host and port, for logs: what else may stand in an
/// address, such as a password, is none of theirs.
pub(super) fn server(kube: &KubeConfig) -> String {
    let host = kube.cluster_url.host().unwrap_or_default();
    match kube.cluster_url.port() {
        Some(port) => format!("{host}:{port}"),
        None => host.to_owned(),
    }
}

/// A client; with a fence, one that writes only while this replica leads.
pub(super) fn connect(
    mut kube: KubeConfig,
    fence: Option<Fence>,
    metrics: &Arc<SchedulerMetrics>,
) -> anyhow::Result<kube::Client> {
    let measure = metrics.rest_client(&server(&kube));
    let auth = &mut kube.auth_info;
    // What comes before a token file, in the client library and elsewhere.
    let other = auth.token.is_some() || auth.username.is_some() || auth.auth_provider.is_some();
    let file = if other { None } else { auth.token_file.take() };
    let builder = match ClientBuilder::try_from(kube) {
        Ok(builder) => builder.with_layer(&option_layer(fence)).with_layer(&measure),
        // Errors of this type say their causes themselves.
        Err(error) => bail!("{error}"),
    };
    let Some(file) = file else { return Ok(builder.build()) };
    let file = Arc::new(TokenFile::open(Path::new(&file))?);
    let sign = move |request: http::Request<Body>| file.sign(request);
    Ok(builder.with_layer(&MapRequestLayer::new(sign)).build())
}

/// The API server's address; one that does not say how to talk is taken as the
/// reference's client takes it: with TLS where TLS is set up.
fn with_scheme(kube: &KubeConfig) -> anyhow::Result<http::Uri> {
    let url = &kube.cluster_url;
    match url.scheme_str() {
        Some("http" | "https") => return Ok(url.clone()),
        Some(other) => {
            bail!("the API server's address begins with {other:?}, allowed: http, https")
        }
        None => {}
    }
    let has_certificate = kube.auth_info.client_certificate.is_some()
        || kube.auth_info.client_certificate_data.is_some();
    let is_tls = kube.root_cert.is_some() || kube.accept_invalid_certs || has_certificate;
    let scheme = if is_tls { "https" } else { "http" };
    let text = format!("{scheme}://{url}");
    text.parse().with_context(|| format!("{url} is not the address of an API server"))
}

async fn from_file(file: &Path) -> anyhow::Result<KubeConfig> {
    let name = file.display();
    // Errors of this type say their causes themselves.
    let kubeconfig = match Kubeconfig::read_from(file) {
        Ok(kubeconfig) => kubeconfig,
        // This one names the file in its own way.
        Err(KubeconfigError::ReadConfig(error, _)) => {
            bail!("cannot read kubeconfig {name}: {error}")
        }
        Err(error) => bail!("kubeconfig {name}: {error}"),
    };
    match from_document(kubeconfig).await {
        Ok(config) => Ok(config),
        Err(error) => bail!("kubeconfig {name} cannot be used: {error}"),
    }
}

/// The usual kubeconfig, else the service account of the pod that this is.
async fn from_surroundings() -> anyhow::Result<KubeConfig> {
    let kubeconfig = match Kubeconfig::read() {
        Ok(kubeconfig) => from_document(kubeconfig).await,
        Err(error) => Err(error.to_string()),
    };
    let kubeconfig = match kubeconfig {
        Ok(kube) => return Ok(kube),
        Err(error) => error,
    };
    match KubeConfig::incluster() {
        Ok(kube) => Ok(kube),
        Err(in_cluster) => bail!(
            "no --kubeconfig or --master is given, and neither $KUBECONFIG, ~/.kube/config nor a \
             pod's service account can be used: kubeconfig: {kubeconfig}; service account: \
             {in_cluster}"
        ),
    }
}

/// What a kubeconfig says, with the proxy that it names itself if any: the
/// client library compares `NO_PROXY` with the proxy instead of the server.
async fn from_document(kubeconfig: Kubeconfig) -> Result<KubeConfig, String> {
    let proxy = proxy::of_kubeconfig(&kubeconfig).map(proxy::parse).transpose();
    let proxy = proxy.map_err(|error| format!("the cluster's proxy-url: {error}"))?;
    let options = KubeConfigOptions::default();
    // Errors of this type say their causes themselves.
    let kube = KubeConfig::from_custom_kubeconfig(kubeconfig, &options).await;
    let mut kube = kube.map_err(|error| error.to_string())?;
    kube.proxy_url = proxy;
    Ok(kube)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_that_cannot_be_are_refused() {
        let cases = [
            ("https://a:6443", true),
            ("https://a", true),
            ("a:1", true),
            ("https://me:secret@a:6443/", true),
            ("https://[::1]:6443", true),
            ("https://[::1]", true),
            ("https://a:99999999", false),
        ];
        for (text, possible) in cases {
            assert_eq!(has_possible_port(&text.parse().unwrap()), possible, "{text}");
        }
    }

    #[test]
    fn an_address_without_a_scheme_is_completed_and_a_foreign_one_refused() {
        let with = |url: &str, insecure: bool| {
            let mut kube = KubeConfig::new(url.parse().unwrap());
            kube.accept_invalid_certs = insecure;
            with_scheme(&kube).map_or_else(|error| error.to_string(), |url| url.to_string())
        };
        assert_eq!(with("127.0.0.1:8080", false), "http://127.0.0.1:8080/");
        assert_eq!(with("host", true), "https://host/");
        assert_eq!(with("https://host:1/path", false), "https://host:1/path");
        assert!(with("ftp://host", false).contains("\"ftp\", allowed: http, https"));
    }
}
