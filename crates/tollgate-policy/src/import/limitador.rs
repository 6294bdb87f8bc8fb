//! Limitador's limits file: a list of limits, each with a namespace, a count and a time.

use super::condition::{self, LimitadorCondition, conditions, variable};
use super::{ImportNote, Imported};
use crate::diagnostic::{Diagnostic, Position, Severity, codes};
use crate::yaml::{self, Node, ScalarKind, Value};
use std::collections::hash_map::{Entry, HashMap};
use std::collections::{BTreeSet, HashSet};
use std::fmt::Write;

const HEAD: &str = "# Made by `tollgate import limitador`; look through what it said before you use it.\n\
listen: {grpc: 127.0.0.1:8082}\nlimits:\n";

const FIELDS: [&str; 7] =
    ["namespace", "max_value", "seconds", "name", "id", "conditions", "variables"];

/// Converts a limits file of Limitador to a policy file.
///
/// # Errors
///
/// Fails if the file is not YAML, or not a list.
pub fn limitador(bytes: &[u8]) -> Result<Imported, Diagnostic> {
    let node = yaml::parse(bytes)?;
    let Value::List(items) = &node.value else {
        let message = "a limits file of Limitador is a list";
        let help = "give the file that limitador-server is started with";
        return Err(Diagnostic::new(codes::WRONG_TYPE, Severity::Error, node.at, message, help));
    };
    let mut import =
        Import { text: HEAD.to_owned(), limits: 0, notes: Vec::new(), names: HashSet::new() };
    let (mut first_positions, mut duplicates) = (HashMap::new(), 0);
    for item in items {
        match LimitadorIdentity::of(item).map(|identity| first_positions.entry(identity)) {
            Some(Entry::Occupied(first)) => {
                let Position { line, column } = first.get();
                let text = format!(
                    "dropped, as Limitador does: it counts like the limit at {line}:{column}, which wins"
                );
                import.note(item.at, false, text);
                duplicates += 1;
                continue;
            }
            Some(Entry::Vacant(entry)) => drop(entry.insert(item.at)),
            None => {}
        }
        if let Err(why) = import.limit(item) {
            import.note(why.0, true, format!("left out: {}", why.1));
        }
    }
    if import.limits == 0 {
        import.text = import.text.replace("limits:\n", "limits: []\n");
    } else {
        let text =
            "windows are aligned to the clock here; Limitador begins one with the first request";
        import.note(node.at, false, text.to_owned());
    }
    let Import { text, limits, notes, .. } = import;
    Ok(Imported { text, limits, duplicates, notes })
}

struct Import {
    text: String,
    limits: usize,
    notes: Vec<ImportNote>,
    names: HashSet<String>,
}

/// The fields by which Limitador identifies a limit. Of limits with equal identities Limitador
/// keeps the first, whatever their `max_value`, `name` and `id`.
#[derive(PartialEq, Eq, Hash)]
struct LimitadorIdentity {
    namespace: String,
    seconds: String,
    conditions: BTreeSet<String>,
    variables: BTreeSet<String>,
}

impl LimitadorIdentity {
    /// Returns `None` for an entry that cannot be compared: it is not a map, or it has unknown
    /// fields.
    fn of(node: &Node) -> Option<Self> {
        let Value::Map(fields) = &node.value else { return None };
        if fields.iter().any(|(key, _)| !FIELDS.contains(&&*key.text)) {
            return None;
        }
        let field = |name: &str| node.field(name);
        let texts = |name: &str| -> Option<BTreeSet<String>> {
            list(field(name)).ok()?.iter().map(|item| item.text().map(str::to_owned)).collect()
        };
        Some(Self {
            namespace: field("namespace").and_then(Node::text)?.to_owned(),
            seconds: field("seconds").and_then(Node::text)?.to_owned(),
            conditions: texts("conditions")?,
            variables: texts("variables")?,
        })
    }
}

/// The position of a limit that cannot be converted, and why.
type UnsupportedLimit = (Position, String);

impl Import {
    fn note(&mut self, at: Position, is_lost: bool, text: String) {
        self.notes.push(ImportNote { at, is_lost, text });
    }

    fn limit(&mut self, node: &Node) -> Result<(), UnsupportedLimit> {
        let Value::Map(fields) = &node.value else {
            return Err((node.at, "it is not a map".to_owned()));
        };
        if let Some((key, _)) = fields.iter().find(|(key, _)| !FIELDS.contains(&&*key.text)) {
            return Err((key.at, format!("`{}` has no equal", key.text)));
        }
        let field = |name: &str| node.field(name);
        let namespace = field("namespace")
            .and_then(Node::text)
            .ok_or_else(|| (node.at, "it has no namespace".to_owned()))?;
        if namespace.contains('*') || namespace.is_empty() {
            return Err((node.at, "its namespace is a pattern here".to_owned()));
        }
        let rate = rate(node, field("max_value"), field("seconds"))?;
        let (mut equal, mut unequal) =
            (vec![("domain".to_owned(), namespace.to_owned())], Vec::new());
        let mut which = DescriptorIndex::default();
        for (at, condition) in all_conditions(field("conditions"))? {
            let key = which.require_same(at, condition.entry)?;
            let name = format!("descriptor.{key}");
            if equal.iter().any(|(known, _)| *known == name) {
                return Err((at, format!("`{key}` is compared twice")));
            }
            let pair = (name, condition.value);
            if condition.is_equal { equal.push(pair) } else { unequal.push(pair) }
        }
        let key = variables(field("variables"), &mut which)?;
        let given = field("name").or(field("id")).and_then(Node::text).unwrap_or(namespace);
        let name = self.name(given);
        self.limits += 1;
        let map = |pairs: &[(String, String)]| -> String {
            let pair =
                |(name, value): &(String, String)| format!("{}: {}", quote(name), quote(value));
            pairs.iter().map(pair).collect::<Vec<_>>().join(", ")
        };
        // In both programs, a missing attribute is not equal to any text.
        let each = unequal.iter().map(|pair| format!("{{{}}}", map(std::slice::from_ref(pair))));
        let each = each.collect::<Vec<_>>().join(", ");
        let not = if each.is_empty() { each } else { format!(", not: [{each}]") };
        let out = &mut self.text;
        let _ = writeln!(out, "  - name: {}", quote(&name));
        let _ = writeln!(out, "    match: {{{}{not}}}", map(&equal));
        if !key.is_empty() {
            let _ = writeln!(
                out,
                "    key: [{}]",
                key.iter().map(|k| quote(k)).collect::<Vec<_>>().join(", ")
            );
        }
        let _ = writeln!(out, "    algorithm: fixed-window\n    rate: {rate}");
        Ok(())
    }

    /// Derives a valid name that no other limit has.
    fn name(&mut self, given: &str) -> String {
        let plain = |c: char| if matches!(c, ' '..='~') && c != '/' { c } else { '-' };
        let plain: String = given.chars().map(plain).take(56).collect();
        let plain = if plain.trim().is_empty() { "limit".to_owned() } else { plain };
        let numbered = |n: usize| if n == 1 { plain.clone() } else { format!("{plain}-{n}") };
        let name = (1..).map(numbered).find(|name| !self.names.contains(name)).unwrap_or_default();
        self.names.insert(name.clone());
        name
    }
}

fn rate(
    node: &Node,
    max: Option<&Node>,
    seconds: Option<&Node>,
) -> Result<String, UnsupportedLimit> {
    let number = |field: Option<&Node>, name: &str, most: u64| match field
        .map(|node| (&node.value, node.at))
    {
        Some((Value::Scalar { kind: ScalarKind::Unsigned(value), .. }, _)) if *value <= most => {
            Ok(*value)
        }
        Some((_, at)) => Err((at, format!("`{name}` is not a whole number up to {most}"))),
        None => Err((node.at, format!("it has no `{name}`"))),
    };
    let max = number(max, "max_value", u32::MAX.into())?;
    match number(seconds, "seconds", 366 * 86_400)? {
        0 => Err((node.at, "its `seconds` are 0".to_owned())),
        seconds => Ok(format!("{max}/{seconds}s")),
    }
}

fn all_conditions(
    field: Option<&Node>,
) -> Result<Vec<(Position, LimitadorCondition)>, UnsupportedLimit> {
    let mut all = Vec::new();
    for item in list(field)? {
        let text = item.text().unwrap_or_default();
        let read = conditions(text)
            .ok_or_else(|| (item.at, format!("the condition `{text}` has no equal")))?;
        all.extend(read.into_iter().map(|condition| (item.at, condition)));
    }
    Ok(all)
}

/// The descriptor that a limit reads.
#[derive(Default)]
struct DescriptorIndex(Option<String>);

impl DescriptorIndex {
    /// Returns the entry's key. Fails if the entry is in another descriptor than earlier ones: a
    /// limit on two descriptors would never apply here.
    fn require_same(
        &mut self,
        at: Position,
        entry: condition::DescriptorEntry,
    ) -> Result<String, UnsupportedLimit> {
        match (&self.0, entry.descriptor) {
            (Some(known), Some(other)) if *known != other => {
                Err((at, "it looks at several descriptors of a call".to_owned()))
            }
            (_, None) => Ok(entry.key),
            (_, descriptor) => {
                self.0 = descriptor;
                Ok(entry.key)
            }
        }
    }
}

fn variables(
    field: Option<&Node>,
    which: &mut DescriptorIndex,
) -> Result<Vec<String>, UnsupportedLimit> {
    let mut all = Vec::new();
    for item in list(field)? {
        let text = item.text().unwrap_or_default();
        let entry = variable(text)
            .ok_or_else(|| (item.at, format!("the variable `{text}` has no equal")))?;
        let name = format!("descriptor.{}", which.require_same(item.at, entry)?);
        if !all.contains(&name) {
            all.push(name);
        }
    }
    Ok(all)
}

fn list(field: Option<&Node>) -> Result<&[Node], UnsupportedLimit> {
    match field.map(|node| (&node.value, node.at)) {
        None | Some((Value::Null, _)) => Ok(&[]),
        Some((Value::List(items), _)) => Ok(items),
        Some((_, at)) => Err((at, "it is not a list".to_owned())),
    }
}

/// Quotes a text for YAML if it needs quotes. In single quotes, only single quotes are special, but
/// line ends are folded. So invisible characters are escaped in double quotes.
fn quote(text: &str) -> String {
    const WORDS: [&str; 9] = ["true", "false", "null", "yes", "no", "on", "off", "y", "n"];
    let is_word = WORDS.iter().any(|word| text.eq_ignore_ascii_case(word));
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
    let is_name = text.starts_with(|c: char| c.is_ascii_alphabetic());
    if is_name && !is_word && text.chars().all(is_plain) {
        return text.to_owned();
    }
    let is_hidden = |c: char| c.is_control() || matches!(c, '\u{2028}' | '\u{2029}' | '\u{feff}');
    if !text.contains(is_hidden) {
        return format!("'{}'", text.replace('\'', "''"));
    }
    let escape = |c: char| match c {
        '"' | '\\' => format!("\\{c}"),
        c if is_hidden(c) => format!("\\u{:04x}", u32::from(c)),
        c => c.to_string(),
    };
    format!("\"{}\"", text.chars().map(escape).collect::<String>())
}
