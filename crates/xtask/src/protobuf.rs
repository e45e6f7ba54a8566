//! Makes the protobuf table of the `apiserver` crate from the Go types of
//! Kubernetes' API.
//!
//! Field numbers are in the tags of those types, and only there stands, too,
//! which zeros mean nothing: protobuf sends every field that is not a pointer,
//! JSON leaves out those with `omitempty`.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail};
use regex::Regex;

/// Where the result goes, from the root of the workspace.
const TARGET: &str = "crates/apiserver/src/protobuf/messages.txt";

/// Packages of `k8s.io/api`.
const PACKAGES: &[&str] = &[
    "admissionregistration/v1",
    "apps/v1",
    "authentication/v1",
    "authorization/v1",
    "autoscaling/v1",
    "autoscaling/v2",
    "batch/v1",
    "coordination/v1",
    "core/v1",
    "discovery/v1",
    "events/v1",
    "networking/v1",
    "node/v1",
    "policy/v1",
    "policy/v1beta1",
    "rbac/v1",
    "resource/v1",
    "scheduling/v1",
    "storage/v1",
];
const META: &str = "pkg/apis/meta/v1";

/// A Go type that is declared in terms of another.
#[derive(Default)]
struct Declarations {
    /// `core.v1.PodSpec` to its fields.
    structs: BTreeMap<String, Vec<Field>>,
    /// `core.v1.ResourceList` to `map[core.v1.ResourceName]Quantity`.
    names: BTreeMap<String, String>,
}

struct Field {
    number: u32,
    /// Empty for what is inlined.
    json: String,
    go_type: String,
    omits_zero: bool,
}

/// Writes the table. `api` and `apimachinery` are checkouts of the repositories
/// of those names.
pub(crate) fn run(root: &Path, api: &Path, apimachinery: &Path) -> Result<()> {
    let mut declared = Declarations::default();
    for package in PACKAGES {
        read_package(&mut declared, &api.join(package), &package.replace('/', "."))?;
    }
    read_package(&mut declared, &apimachinery.join(META), "meta.v1")?;
    let mut table = String::from(
        "# Messages of Kubernetes' API: number, name in JSON and type of each field.\n\
         # Written by `cargo xtask protobuf`; see the module's documentation.\n",
    );
    for (name, fields) in &declared.structs {
        if fields.is_empty() || special(name).is_some() {
            continue;
        }
        table.push_str(&format!("{name}\n"));
        for field in fields {
            let name = if field.json.is_empty() { "-" } else { &field.json };
            let kind = declared.wire_type(&field.go_type, field.omits_zero)?;
            table.push_str(&format!(" {} {name} {kind}\n", field.number));
        }
    }
    let target = root.join(TARGET);
    fs::write(&target, table).with_context(|| format!("cannot write {}", target.display()))
}

fn read_package(declared: &mut Declarations, directory: &Path, package: &str) -> Result<()> {
    let mut files: Vec<_> = fs::read_dir(directory)
        .with_context(|| format!("cannot read {}", directory.display()))?
        .collect::<Result<_, _>>()?;
    files.sort_by_key(fs::DirEntry::file_name);
    for file in files {
        let path = file.path();
        let name = file.file_name().to_string_lossy().into_owned();
        if name.ends_with(".go") && !name.ends_with("_test.go") && !name.contains("generated") {
            let text = fs::read_to_string(&path)?;
            read_file(declared, &text, package)?;
        }
    }
    Ok(())
}

fn read_file(declared: &mut Declarations, text: &str, package: &str) -> Result<()> {
    let import = Regex::new(r#"^\s+(?:(\w+) )?"(k8s\.io/[\w./-]+)"$"#)?;
    let start = Regex::new(r"^type (\w+) struct \{")?;
    let alias = Regex::new(r"^type (\w+) ([\w.\[\]*]+)$")?;
    let field = Regex::new(r#"^\t(?:(\w+)\s+)?([\w.\[\]*]+)\s+`(.*protobuf:".*)`"#)?;
    let json = Regex::new(r#"json:"([^"]*)""#)?;
    let number = Regex::new(r#"protobuf:"\w+,(\d+),"#)?;
    let mut imports = BTreeMap::new();
    let mut current: Option<String> = None;
    for line in text.lines() {
        if let Some(found) = import.captures(line) {
            let path = &found[2];
            let name = found.get(1).map_or(path.rsplit('/').next().unwrap_or(""), |m| m.as_str());
            imports.insert(name.to_owned(), package_of(path));
        } else if let Some(found) = start.captures(line) {
            let name = format!("{package}.{}", &found[1]);
            declared.structs.insert(name.clone(), Vec::new());
            current = Some(name);
        } else if line == "}" {
            current = None;
        } else if let Some(found) = alias.captures(line) {
            let go_type = qualify(&found[2], package, &imports);
            declared.names.insert(format!("{package}.{}", &found[1]), go_type);
        } else if let (Some(name), Some(found)) = (&current, field.captures(line)) {
            let tag = &found[3];
            let Some(number) = number.captures(tag) else { continue };
            let json = json.captures(tag).map(|found| found[1].to_owned()).unwrap_or_default();
            let mut options = json.split(',');
            let json_name = options.next().unwrap_or("").to_owned();
            let fields = declared.structs.get_mut(name).context("a struct that is being read")?;
            fields.push(Field {
                number: number[1].parse()?,
                json: json_name,
                go_type: qualify(&found[2], package, &imports),
                omits_zero: options.any(|option| option == "omitempty"),
            });
        }
    }
    Ok(())
}

/// `k8s.io/api/core/v1` as `core.v1`.
fn package_of(path: &str) -> String {
    let short = path.strip_prefix("k8s.io/api/").or_else(|| {
        let meta = path.strip_prefix("k8s.io/apimachinery/pkg/apis/");
        meta.or_else(|| path.strip_prefix("k8s.io/apimachinery/pkg/"))
    });
    short.unwrap_or(path).replace('/', ".")
}

/// A Go type with full names: `[]v1.Volume` as `[]core.v1.Volume`.
fn qualify(go_type: &str, package: &str, imports: &BTreeMap<String, String>) -> String {
    for prefix in ["[]", "*"] {
        if let Some(rest) = go_type.strip_prefix(prefix) {
            return format!("{prefix}{}", qualify(rest, package, imports));
        }
    }
    if let Some((key, value)) = go_type.strip_prefix("map[").and_then(|rest| rest.split_once(']')) {
        let (key, value) = (qualify(key, package, imports), qualify(value, package, imports));
        return format!("map[{key}]{value}");
    }
    match go_type {
        "string" | "bool" | "int32" | "int64" | "float64" | "byte" => go_type.to_owned(),
        local => match local.split_once('.') {
            Some((import, name)) => {
                let package = imports.get(import).map_or(import, String::as_str);
                format!("{package}.{name}")
            }
            None => format!("{package}.{local}"),
        },
    }
}

/// Types that JSON writes in a way of their own.
fn special(name: &str) -> Option<&'static str> {
    Some(match name {
        "api.resource.Quantity" => "quantity",
        "util.intstr.IntOrString" => "int-or-string",
        "meta.v1.Time" => "time",
        "meta.v1.MicroTime" => "micro-time",
        "meta.v1.Duration" => "duration",
        "meta.v1.FieldsV1" | "runtime.RawExtension" => "raw",
        "types.UID" => "string",
        _ => return None,
    })
}

impl Declarations {
    /// The type in the table's words: `?` before what is left out when it is
    /// zero, `*` before what repeats.
    fn wire_type(&self, go_type: &str, omits_zero: bool) -> Result<String> {
        if let Some(pointed) = go_type.strip_prefix('*') {
            return self.wire_type(pointed, false);
        }
        if go_type == "[]byte" {
            return Ok("bytes".to_owned());
        }
        if let Some(item) = go_type.strip_prefix("[]") {
            return Ok(format!("*{}", self.wire_type(item, false)?));
        }
        if let Some(rest) = go_type.strip_prefix("map[") {
            let value = rest.split_once(']').context("a map has a key type")?.1;
            return Ok(format!("map:{}", self.wire_type(value, false)?));
        }
        let scalar = match go_type {
            "string" => Some("string"),
            "bool" => Some("bool"),
            "int32" | "int64" => Some("int"),
            "float64" => Some("double"),
            _ => None,
        };
        if let Some(scalar) = scalar {
            return Ok(if omits_zero { format!("?{scalar}") } else { scalar.to_owned() });
        }
        if let Some(special) = special(go_type) {
            let omits_zero = omits_zero && special == "string";
            return Ok(if omits_zero { format!("?{special}") } else { special.to_owned() });
        }
        if self.structs.contains_key(go_type) {
            return Ok(go_type.to_owned());
        }
        match self.names.get(go_type) {
            // In protobuf a list with a name is a message around it.
            Some(list) if list.starts_with("[]") => {
                Ok(format!("list:{}", self.wire_type(&list[2..], false)?))
            }
            Some(other) => self.wire_type(other, omits_zero),
            None => bail!("the type {go_type} is declared nowhere"),
        }
    }
}
