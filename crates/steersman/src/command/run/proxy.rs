//! The proxy that the environment names on the way to the API server, as Go's
//! `net/http` reads it: `HTTPS_PROXY` or `HTTP_PROXY` by the server's scheme,
//! `NO_PROXY` compared with the server, all in capitals or small letters.

use std::net::IpAddr;

use anyhow::{Context, ensure};
use http::Uri;
use hyper_util::client::proxy::matcher::Matcher;
use kube::config::Kubeconfig;

const SCHEMES: [&str; 3] = ["http", "https", "socks5"];

/// What the current context's cluster says itself (`proxy-url`). It comes
/// before the environment, whatever that says.
pub(super) fn of_kubeconfig(kubeconfig: &Kubeconfig) -> Option<&str> {
    let context = kubeconfig.current_context.as_deref()?;
    let context = kubeconfig.contexts.iter().find(|named| named.name == context)?;
    let cluster = &context.context.as_ref()?.cluster;
    let cluster = kubeconfig.clusters.iter().find(|named| named.name == *cluster)?;
    cluster.cluster.as_ref()?.proxy_url.as_deref().filter(|url| !url.is_empty())
}

/// The proxy to `server` by the environment, which `variable` looks up; `None`
/// where it is reached directly. Servers on this machine always are.
pub(super) fn of_environment(
    server: &Uri,
    variable: impl Fn(&str) -> Option<String>,
) -> anyhow::Result<Option<Uri>> {
    let either = |name: &'static str| {
        let set = |name: &str| variable(name).filter(|value| !value.is_empty());
        set(name).or_else(|| set(&name.to_lowercase()))
    };
    let name = if server.scheme_str() == Some("http") { "HTTP_PROXY" } else { "HTTPS_PROXY" };
    let (Some(proxy), Some(host)) = (either(name), server.host()) else { return Ok(None) };
    if is_here(host) || either("NO_PROXY").is_some_and(|no| is_exempt(server, &no)) {
        return Ok(None);
    }
    parse(&proxy).with_context(|| format!("the environment's {name}")).map(Some)
}

/// A proxy's address; one without a scheme speaks HTTP. A password may stand in
/// it, so no message shows it.
pub(super) fn parse(text: &str) -> anyhow::Result<Uri> {
    let with_scheme = if text.contains("://") { text.to_owned() } else { format!("http://{text}") };
    let uri: Option<Uri> = with_scheme.parse().ok().filter(|uri: &Uri| uri.host().is_some());
    let uri = uri.context("not the address of a proxy, such as http://10.0.0.1:3128")?;
    let scheme = uri.scheme_str().unwrap_or_default();
    ensure!(
        SCHEMES.contains(&scheme),
        "a proxy's address that begins with {scheme:?}, allowed: {}",
        SCHEMES.join(", ")
    );
    Ok(uri)
}

fn is_here(host: &str) -> bool {
    let address = host.trim_start_matches('[').trim_end_matches(']');
    host == "localhost" || address.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

/// Whether `NO_PROXY` names the server: by name, domain, address, network or
/// `*`, each but a network also with a port.
fn is_exempt(server: &Uri, no_proxy: &str) -> bool {
    let default = if server.scheme_str() == Some("http") { 80 } else { 443 };
    let port = server.port_u16().unwrap_or(default);
    let entries = no_proxy.split(',').map(str::trim).filter_map(|entry| {
        let (place, at) = split_port(entry);
        let place = if place.starts_with("*.") { &place[1..] } else { place };
        at.is_none_or(|at| at == port).then_some(place)
    });
    let entries = entries.collect::<Vec<_>>().join(",");
    // The library compares; which proxy it would be does not matter to it.
    Matcher::builder().all("http://proxy").no(entries).build().intercept(server).is_none()
}

/// An entry's place and port, if it has one.
fn split_port(entry: &str) -> (&str, Option<u16>) {
    if let Some(rest) = entry.strip_prefix('[') {
        let (place, port) = rest.split_once(']').unwrap_or((rest, ""));
        return (place, port.strip_prefix(':').and_then(|port| port.parse().ok()));
    }
    match entry.rsplit_once(':') {
        // More than one colon: an address of IPv6.
        Some((place, port)) if !place.contains(':') => match port.parse() {
            Ok(port) => (place, Some(port)),
            Err(_) => (entry, None),
        },
        _ => (entry, None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(server: &str, variables: &[(&str, &str)]) -> String {
        let variable = |name: &str| {
            let entry = variables.iter().find(|(known, _)| *known == name);
            entry.map(|(_, value)| (*value).to_owned())
        };
        match of_environment(&server.parse().unwrap(), variable) {
            Ok(Some(proxy)) => proxy.to_string(),
            Ok(None) => "direct".to_owned(),
            Err(error) => format!("{error:#}"),
        }
    }

    #[test]
    fn the_scheme_says_which_variable_counts() {
        let both = [("HTTP_PROXY", "http://plain:1"), ("https_proxy", "secure:2")];
        assert_eq!(found("https://api:6443", &both), "http://secure:2/");
        assert_eq!(found("http://api:8080", &both), "http://plain:1/");
        assert_eq!(found("https://api:6443", &both[..1]), "direct");
        let empty = [("HTTPS_PROXY", ""), ("https_proxy", "socks5://u:p@s:3")];
        assert_eq!(found("https://api", &empty), "socks5://u:p@s:3/");
    }

    #[test]
    fn no_proxy_is_compared_with_the_server() {
        let cases = [
            ("https://10.96.0.1", "10.96.0.0/12,.svc", true),
            ("https://10.95.0.1", "10.96.0.0/12,.svc", false),
            ("https://10.0.0.1:6443", "10.0.0.1", true),
            ("https://10.0.0.1:6443", "10.0.0.1:6443", true),
            ("https://10.0.0.1:6443", "10.0.0.1:443", false),
            ("https://10.0.0.1", "10.0.0.1:443", true),
            ("https://api.example:6443", "example", true),
            ("https://api.example:6443", " *.example , other", true),
            ("https://api.example:6443", "ample", false),
            ("https://api.example:6443", "proxy", false),
            ("https://api.example:6443", "*", true),
            ("https://[fd00::1]:6443", "fd00::/8", true),
            ("https://[fd00::1]:6443", "[fd00::1]:6443", true),
            ("https://[fd00::1]:6443", "[fd00::1]:1", false),
            ("https://127.0.0.1:6443", "", true),
            ("https://localhost:6443", "", true),
            ("https://[::1]:6443", "", true),
        ];
        for (server, no_proxy, direct) in cases {
            let variables = [("HTTPS_PROXY", "http://proxy:3128"), ("NO_PROXY", no_proxy)];
            let expected = if direct { "direct" } else { "http://proxy:3128/" };
            assert_eq!(found(server, &variables), expected, "{server} and {no_proxy}");
        }
    }

    #[test]
    fn proxies_that_cannot_be_are_refused_without_showing_a_password() {
        let with = |proxy| found("https://api", &[("HTTPS_PROXY", proxy)]);
        assert_eq!(
            with("http://me:secret@"),
            "the environment's HTTPS_PROXY: not the address of a proxy, such as \
             http://10.0.0.1:3128"
        );
        assert_eq!(
            with("ftp://me:secret@proxy"),
            "the environment's HTTPS_PROXY: a proxy's address that begins with \"ftp\", allowed: \
             http, https, socks5"
        );
    }

    #[test]
    fn a_kubeconfig_names_the_proxy_of_its_current_cluster() {
        let text = |current: &str| {
            format!(
                "{{\"apiVersion\": \"v1\", \"kind\": \"Config\", \"current-context\": \
                 \"{current}\", \"contexts\": [{{\"name\": \"a\", \"context\": {{\"cluster\": \
                 \"one\", \"user\": \"u\"}}}}, {{\"name\": \"b\", \"context\": {{\"cluster\": \
                 \"two\", \"user\": \"u\"}}}}], \"clusters\": [{{\"name\": \"one\", \"cluster\": \
                 {{\"server\": \"https://one\"}}}}, {{\"name\": \"two\", \"cluster\": \
                 {{\"server\": \"https://two\", \"proxy-url\": \"http://proxy:1\"}}}}]}}"
            )
        };
        for (current, expected) in [("a", None), ("b", Some("http://proxy:1")), ("c", None)] {
            let kubeconfig: Kubeconfig = serde_json::from_str(&text(current)).unwrap();
            assert_eq!(of_kubeconfig(&kubeconfig), expected);
        }
    }
}
