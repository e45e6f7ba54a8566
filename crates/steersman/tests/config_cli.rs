//! `steersman config` from outside: exit codes, and what goes where.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use steersman_apiserver::tls::Identity;

/// A directory of this test's own, with `files`.
fn directory(test: &str, files: &[(&str, &str)]) -> PathBuf {
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join("config-cli").join(test);
    fs::create_dir_all(&directory).expect("a directory");
    for (name, text) in files {
        fs::write(directory.join(name), text).expect("a file");
    }
    directory
}

fn steersman(directory: &Path, args: &[&str], stdin: &str) -> Output {
    let mut child = Command::new(env!("CARGO_BIN_EXE_steersman"))
        .arg("config")
        .args(args)
        .current_dir(directory)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program");
    // A program that refuses its arguments does not read.
    let _ = child.stdin.take().expect("a pipe").write_all(stdin.as_bytes());
    child.wait_with_output().expect("its output")
}

/// Runs the program; its exit code, stdout and stderr.
fn ran(directory: &Path, args: &[&str], stdin: &str) -> (i32, String, String) {
    let output = steersman(directory, args, stdin);
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.code().expect("a code"), text(&output.stdout), text(&output.stderr))
}

const V1: &str = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n";
const BETA: &str =
    "apiVersion: kubescheduler.config.k8s.io/v1beta2\nkind: KubeSchedulerConfiguration\n";

#[test]
fn validate_tells_everything_about_every_file() {
    let bad = format!("{V1}parallelism: 0\npercentageOfNodesToScore: 101\n");
    let files = [("good.yaml", V1), ("beta.yaml", BETA), ("bad.yaml", bad.as_str())];
    let directory = directory("validate", &files);
    let (code, out, err) = ran(&directory, &["validate", "good.yaml", "beta.yaml"], "");
    assert_eq!((code, out.as_str()), (0, "good.yaml: usable\nbeta.yaml: usable\n"));
    assert!(err.starts_with("note: beta.yaml: apiVersion: found "), "{err}");

    let (code, out, err) = ran(&directory, &["validate", "bad.yaml", "gone.yaml", "-"], V1);
    assert_eq!(code, 1);
    assert_eq!(out, "bad.yaml: 2 problems\ngone.yaml: 1 problem\n-: usable\n");
    assert!(err.contains("error: bad.yaml: parallelism: found 0, allowed: 1 or more\n"), "{err}");
    assert!(err.contains("error: gone.yaml: cannot read gone.yaml: "), "{err}");

    let (code, out, err) = ran(&directory, &["validate", "bad.yaml", "--output", "json"], "");
    let rows: serde_json::Value = serde_json::from_str(&out).expect("JSON");
    assert_eq!((code, rows[0]["usable"].as_bool(), err.as_str()), (1, Some(false), ""));
    assert_eq!(rows[0]["problems"][0]["path"], "parallelism");
}

#[test]
fn tls_files_of_extenders_are_looked_at() {
    let extender = |port: u16, tls: &str| {
        format!("- urlPrefix: https://localhost:{port}/\n  tlsConfig: {{{tls}}}\n")
    };
    let now = "2026-01-01T00:00:00Z".parse().expect("a time");
    let authority = Identity::generate(&[], now).expect("an authority");
    let [own, other] =
        ["a", "b"].map(|user| authority.client(user, None, now).expect("a certificate"));
    let files = format!(
        "{V1}extenders:\n{}{}",
        extender(1, "caFile: gone/ca.pem, certFile: cert.pem, keyFile: key.pem"),
        extender(2, "insecure: true, keyFile: nonsense.pem"),
    );
    let missing =
        format!("{V1}extenders:\n{}", extender(1, "caFile: /gone/ca.pem, serverName: 'a b'"));
    let good = format!("{V1}extenders:\n{}", extender(1, "certFile: cert.pem, keyFile: key.pem"));
    let directory = directory(
        "tls-files",
        &[
            ("files.yaml", files.as_str()),
            ("missing.yaml", missing.replace(", serverName: 'a b'", "").as_str()),
            ("odd.yaml", missing.as_str()),
            ("good.yaml", good.as_str()),
            ("cert.pem", own.cert_pem.as_str()),
            ("key.pem", other.key_pem.as_str()),
            ("nonsense.pem", "secret nonsense"),
        ],
    );
    let (code, out, err) = ran(&directory, &["validate", "files.yaml"], "");
    assert_eq!((code, out.as_str()), (1, "files.yaml: 3 problems\n"), "{err}");
    for line in [
        "error: files.yaml: extenders[0].tlsConfig.keyFile: \"key.pem\": is not the key of the \
         certificate\n",
        "error: files.yaml: extenders[1].tlsConfig.keyFile: \"nonsense.pem\": there is no \
         certificate for it\n",
        "error: files.yaml: extenders[1].tlsConfig.keyFile: \"nonsense.pem\": found no private \
         key, allowed: PEM with one\n",
        "note: files.yaml: extenders[0].tlsConfig.caFile: cannot read \"gone/ca.pem\": No such \
         file or directory (os error 2); it is needed where the configuration is used\n",
    ] {
        assert!(err.contains(line), "{err}");
    }
    assert!(!err.contains("secret"), "{err}");

    // The machine that checks need not be the one that schedules.
    let missing = |what: &[&str]| ran(&directory, &[&["validate"], what].concat(), "");
    assert_eq!(missing(&["missing.yaml"]).0, 0);
    let (code, _, err) = missing(&["missing.yaml", "--tls-files", "required"]);
    let expected = "error: missing.yaml: extenders[0].tlsConfig.caFile: cannot read \
                    \"/gone/ca.pem\": No such file or directory (os error 2)\n";
    assert_eq!((code, err.as_str()), (1, expected));
    assert_eq!(missing(&["missing.yaml", "--tls-files", "ignore"]).2, "");
    let (code, _, err) = missing(&["odd.yaml", "--tls-files", "ignore"]);
    assert!(code == 1 && err.contains("extenders[0].tlsConfig.serverName: found "), "{err}");
    assert_eq!(missing(&["good.yaml", "--tls-files", "ignore"]).0, 0);

    fs::write(directory.join("key.pem"), own.key_pem).expect("a file");
    let (code, out, err) = ran(&directory, &["validate", "good.yaml"], "");
    assert_eq!((code, out.as_str(), err.as_str()), (0, "good.yaml: usable\n", ""));
}

#[test]
fn keys_are_written_out_where_documents_are_wanted() {
    let key = "c2VjcmV0IGtleQ==";
    let text =
        format!("{V1}extenders: [{{urlPrefix: 'https://a/', tlsConfig: {{keyData: {key}}}}}]\n");
    let directory = directory("keys", &[("a.yaml", &text)]);
    for command in ["defaults", "migrate"] {
        let (code, out, _) = ran(&directory, &[command, "a.yaml"], "");
        assert!(code == 0 && out.contains(key), "{out}");
    }
    // Elsewhere they are not.
    let (code, out, err) = ran(&directory, &["validate", "a.yaml"], "");
    assert!(code == 1 && !format!("{out}{err}").contains(key), "{out}{err}");
}

#[test]
fn defaults_are_complete_and_read_back() {
    let directory = directory("defaults", &[("own.yaml", &format!("{V1}parallelism: 3\n"))]);
    let (code, default, err) = ran(&directory, &["defaults"], "");
    assert_eq!((code, err.as_str()), (0, ""));
    assert!(default.starts_with("apiVersion: kubescheduler.config.k8s.io/v1\n"), "{default}");
    assert!(default.ends_with('\n') && default.contains("name: NodeDeclaredFeatures"), "{default}");
    let (code, changes, err) = ran(&directory, &["diff", "-", "own.yaml"], &default);
    assert_eq!((code, changes.as_str(), err.as_str()), (1, "parallelism: 16 -> 3\n", ""));

    let (_, own, _) = ran(&directory, &["defaults", "own.yaml", "--output", "json"], "");
    let own: serde_json::Value = serde_json::from_str(&own).expect("JSON");
    assert_eq!((&own["parallelism"], &own["podMaxBackoffSeconds"]), (&3.into(), &10.into()));

    let gates = "NodeDeclaredFeatures=false,InPlacePodLevelResourcesVerticalScaling=false,\
                 ExtendWebSocketsToKubelet=false,InPlacePodVerticalScalingInitContainers=false,\
                 RestartAllContainersOnContainerExits=false";
    let (code, out, _) = ran(&directory, &["defaults", "--feature-gates", gates], "");
    assert!(code == 0 && !out.contains("NodeDeclaredFeatures"), "{out}");
    let (code, out, err) = ran(&directory, &["defaults", "--feature-gates", "Nope=true"], "");
    assert_eq!((code, out.as_str()), (1, ""));
    assert!(err.contains("error: unrecognized feature gate: Nope\n"), "{err}");
}

#[test]
fn migrated_files_differ_in_nothing_from_the_old_ones() {
    let old = format!("{BETA}profiles: [{{schedulerName: a}}]\n");
    let directory = directory("migrate", &[("old.yaml", &old), ("wrong.yaml", "kind: A\n")]);
    let (code, out, err) = ran(&directory, &["migrate", "old.yaml"], "");
    assert!(code == 0 && err.contains("note: old.yaml: profiles[0].plugins.score: "), "{err}");
    let (code, nothing, _) = ran(&directory, &["migrate", "old.yaml", "--to", "new.yaml"], "");
    assert_eq!((code, nothing.as_str()), (0, ""));
    assert_eq!(fs::read_to_string(directory.join("new.yaml")).expect("it was written"), out);
    let (code, changes, err) = ran(&directory, &["diff", "old.yaml", "new.yaml"], "");
    assert_eq!((code, changes.as_str(), err.as_str()), (0, "", ""));

    let (code, out, err) = ran(&directory, &["migrate", "wrong.yaml"], "");
    assert_eq!((code, out.as_str()), (1, ""));
    assert!(err.contains("error: wrong.yaml: apiVersion: required: "), "{err}");
    let (code, _, err) = ran(&directory, &["migrate", "old.yaml", "--to", "no/dir.yaml"], "");
    assert!(code == 1 && err.contains("cannot write no/dir.yaml"), "{err}");
}

#[test]
fn diff_has_the_exit_codes_of_diff() {
    let other = format!(
        "{V1}profiles: [{{pluginConfig: [{{name: VolumeBinding, args: \
                         {{bindTimeoutSeconds: 5}}}}]}}]\n"
    );
    let files = [("a.yaml", V1), ("b.yaml", other.as_str()), ("c.yaml", "[")];
    let directory = directory("diff", &files);
    assert_eq!(ran(&directory, &["diff", "a.yaml", "a.yaml"], "").0, 0);
    let (code, out, _) = ran(&directory, &["diff", "a.yaml", "b.yaml", "-o", "json"], "");
    let rows: serde_json::Value = serde_json::from_str(&out).expect("JSON");
    let expected = serde_json::json!([{
        "path": "profiles[\"default-scheduler\"].pluginConfig[\"VolumeBinding\"].bindTimeoutSeconds",
        "old": "600", "new": "5"
    }]);
    assert_eq!((code, rows), (1, expected));
    for args in [&["diff", "a.yaml", "c.yaml"], &["diff", "gone.yaml", "a.yaml"]] {
        let (code, out, err) = ran(&directory, args, "");
        assert_eq!((code, out.as_str()), (2, ""));
        assert!(err.contains("error: "), "{err}");
    }
}

#[test]
fn help_has_examples() {
    let directory = directory("help", &[]);
    for command in ["validate", "defaults", "migrate", "diff"] {
        let (code, out, _) = ran(&directory, &[command, "--help"], "");
        assert!(code == 0 && out.contains("Examples:"), "{out}");
    }
}
