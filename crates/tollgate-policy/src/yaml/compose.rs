//! Composes the parser's events to a tree: anchors, merge keys and the types of scalars.

use super::{BYTES_MAX, Node, ScalarKind, Value, YamlKey, saturate};
use crate::diagnostic::{Code, Diagnostic, Position, Severity, codes, quoted};
use crate::schema;
use granit_parser::{
    ErrorKind, Event, Marker, Parser, ScalarStyle, ScanError, Span, StrInput, Tag,
};
use rustc_hash::{FxHashMap, FxHashSet};

/// The longest name, in characters. YAML has 1,024 outside of braces, and JSON has no limit.
const NAME_MAX: usize = 1 << 16;
/// The most nodes of a file, with those that are kept for aliases.
const NODES_MAX: usize = 4_000_000;
/// The most nodes that aliases copy.
const COPIED_MAX: usize = 100_000;

pub(super) struct Composer<'a> {
    parser: Parser<'a, StrInput<'a>>,
    depth_max: usize,
    anchors: FxHashMap<usize, Anchored>,
    nodes: usize,
    copied: usize,
    /// The text that is kept for aliases, and that aliases copied: at most [`BYTES_MAX`].
    copied_bytes: usize,
}

/// A finished node that an alias may copy.
struct Anchored {
    node: Node,
    extent: Extent,
}

/// The size of a tree.
#[derive(Clone, Copy)]
struct Extent {
    nodes: usize,
    /// The bytes of names and scalars.
    bytes: usize,
    /// Levels of lists and maps.
    height: usize,
}

enum Key {
    Field(YamlKey),
    /// `<<`: the fields of its value, unless the map has them.
    Merge,
}

impl<'a> Composer<'a> {
    pub(super) fn new(text: &'a str, depth_max: usize) -> Self {
        let options = granit_parser::options! {
            emit_comments: false,
            flow_nesting_limit: depth_max,
            block_nesting_limit: depth_max,
            simple_key_max_lookahead: NAME_MAX,
        };
        let parser = Parser::new_from_str_with_options(text, options);
        Self {
            parser,
            depth_max,
            anchors: FxHashMap::default(),
            nodes: 0,
            copied: 0,
            copied_bytes: 0,
        }
    }

    /// Reads the only document.
    pub(super) fn document(mut self) -> Result<Node, Diagnostic> {
        let mut root = None;
        loop {
            let (event, span) = self.next()?;
            match event {
                Event::StreamEnd => break,
                Event::DocumentStart(..) if root.is_some() => {
                    let help = "keep one document; remove the `---` line";
                    let message = "a second document starts here";
                    return Err(failure(codes::SEVERAL_DOCUMENTS, at(span.start), message, help));
                }
                Event::DocumentStart(..) => root = Some(self.next_node(0)?),
                _ => {}
            }
        }
        Ok(root.unwrap_or(Node { at: Position::START, value: Value::Null }))
    }

    fn next(&mut self) -> Result<(Event<'a>, Span), Diagnostic> {
        match self.parser.next_event() {
            Some(Ok(next)) => Ok(next),
            Some(Err(error)) => Err(self.scan_failure(&error)),
            None => Ok((Event::StreamEnd, Span::default())),
        }
    }

    fn next_node(&mut self, depth: usize) -> Result<Node, Diagnostic> {
        let (event, span) = self.next()?;
        self.node(event, span, depth)
    }

    /// Composes the node that `event` starts, `depth` levels below the root.
    fn node(&mut self, event: Event<'a>, span: Span, depth: usize) -> Result<Node, Diagnostic> {
        let at = at(span.start);
        self.count(1, at)?;
        let (value, anchor) = match event {
            Event::Alias(anchor) => return self.copy(anchor, at, depth),
            Event::Scalar(text, style, anchor, tag) => {
                let tag = tag.as_deref();
                (scalar(text.into_owned(), style, tag).ok_or_else(|| wrong_tag(at))?, anchor)
            }
            Event::SequenceStart(_, anchor, tag) if is_core(tag.as_deref(), "seq") => {
                (self.list(at, depth)?, anchor)
            }
            Event::MappingStart(_, anchor, tag) if is_core(tag.as_deref(), "map") => {
                (self.map(at, depth)?, anchor)
            }
            _ => return Err(wrong_tag(at)),
        };
        let node = Node { at, value };
        if anchor != 0 {
            let extent = Extent::of(&node);
            self.count(extent.nodes, at)?;
            self.count_bytes(extent.bytes, at)?;
            self.anchors.insert(anchor, Anchored { node: node.clone(), extent });
        }
        Ok(node)
    }

    fn list(&mut self, at: Position, depth: usize) -> Result<Value, Diagnostic> {
        self.enter(at, depth, 1)?;
        let mut items = Vec::new();
        loop {
            match self.next()? {
                (Event::SequenceEnd, _) => return Ok(Value::List(items)),
                (event, span) => items.push(self.node(event, span, depth + 1)?),
            }
        }
    }

    fn map(&mut self, at: Position, depth: usize) -> Result<Value, Diagnostic> {
        self.enter(at, depth, 1)?;
        let mut entries = Vec::new();
        let mut merged = Vec::new();
        loop {
            let key = match self.next()? {
                (Event::MappingEnd, _) => break,
                (event, span) => self.key(event, span, depth + 1)?,
            };
            let value = self.next_node(depth + 1)?;
            match key {
                Key::Field(key) => entries.push((key, value)),
                Key::Merge => merged.push(value),
            }
        }
        if let Some(key) = repeated(&entries) {
            return Err(duplicate(key));
        }
        if !merged.is_empty() {
            let mut seen = entries.iter().map(|(key, _)| key.text.clone()).collect();
            let mut all = merged.into_iter();
            all.try_for_each(|node| merge(&mut entries, &mut seen, node))?;
        }
        Ok(Value::Map(entries))
    }

    fn key(&mut self, event: Event<'a>, span: Span, depth: usize) -> Result<Key, Diagnostic> {
        if matches!(&event, Event::Scalar(text, ScalarStyle::Plain, _, None) if text == "<<") {
            return Ok(Key::Merge);
        }
        let node = self.node(event, span, depth)?;
        match node.value {
            Value::Scalar { text, .. } => Ok(Key::Field(YamlKey { at: node.at, text })),
            _ => Err(invalid(node.at, "the name of a field is text", "write the name as text")),
        }
    }

    /// Copies the node of an anchor to the place of its alias.
    fn copy(&mut self, anchor: usize, at: Position, depth: usize) -> Result<Node, Diagnostic> {
        let Some(anchored) = self.anchors.get(&anchor) else {
            let message = "this alias is inside the value that it names, or names a `<<`";
            return Err(invalid(at, message, "write the value out"));
        };
        let extent = anchored.extent;
        self.copied += extent.nodes;
        if self.copied > COPIED_MAX {
            return Err(too_many(at));
        }
        self.count(extent.nodes, at)?;
        self.count_bytes(extent.bytes, at)?;
        self.enter(at, depth, extent.height)?;
        Ok(self.anchors[&anchor].node.clone())
    }

    fn count_bytes(&mut self, bytes: usize, at: Position) -> Result<(), Diagnostic> {
        self.copied_bytes += bytes;
        if self.copied_bytes > BYTES_MAX { Err(too_many(at)) } else { Ok(()) }
    }

    fn count(&mut self, nodes: usize, at: Position) -> Result<(), Diagnostic> {
        self.nodes += nodes;
        if self.nodes > NODES_MAX { Err(too_many(at)) } else { Ok(()) }
    }

    /// Checks that `levels` fit below `depth`.
    fn enter(&self, at: Position, depth: usize, levels: usize) -> Result<(), Diagnostic> {
        if depth + levels > self.depth_max { Err(self.too_deep(at)) } else { Ok(()) }
    }

    fn too_deep(&self, at: Position) -> Diagnostic {
        let help = format!("a file has at most {} levels", self.depth_max);
        failure(codes::TOO_BIG, at, "lists and maps are nested too deeply", &help)
    }

    fn scan_failure(&self, error: &ScanError) -> Diagnostic {
        let at = at(*error.marker());
        match error.kind() {
            ErrorKind::RecursionLimitExceeded => self.too_deep(at),
            ErrorKind::UnknownAnchor => {
                let message = "no anchor above has the name of this alias";
                invalid(at, message, "define the anchor above, with `&` and this name")
            }
            kind => syntax(at, &kind.to_string()),
        }
    }
}

/// The value of a scalar, or `None` if its tag does not fit.
fn scalar(text: String, style: ScalarStyle, tag: Option<&Tag>) -> Option<Value> {
    let plain = match tag {
        None => style == ScalarStyle::Plain,
        Some(tag) => match tag.core_suffix() {
            Some("str") => false,
            Some("null" | "bool" | "int" | "float") => true,
            _ if tag.original() == "!" => false,
            _ => return None,
        },
    };
    let kind = if plain { resolve(&text) } else { Some(ScalarKind::Text) };
    let fits = match tag.and_then(Tag::core_suffix) {
        Some("null") => kind.is_none(),
        Some("bool") => matches!(kind, Some(ScalarKind::Bool(_))),
        Some("int" | "float") => {
            matches!(kind, Some(ScalarKind::Unsigned(_) | ScalarKind::Number))
        }
        _ => true,
    };
    fits.then(|| kind.map_or(Value::Null, |kind| Value::Scalar { kind, text }))
}

/// The type of a plain scalar; `None` is null. `off` is a mode, and `yes` is not a number of slots,
/// so `true` and `false` are the only booleans.
fn resolve(text: &str) -> Option<ScalarKind> {
    if text.is_empty() || text == "~" || text.eq_ignore_ascii_case("null") {
        return None;
    }
    let is_number = || {
        text.parse().is_ok_and(f64::is_finite)
            || text.strip_prefix('-').is_some_and(|digits| unsigned(digits).is_some())
    };
    Some(match unsigned(text.strip_prefix('+').unwrap_or(text)) {
        Some(value) => ScalarKind::Unsigned(value),
        None if text.eq_ignore_ascii_case("true") => ScalarKind::Bool(true),
        None if text.eq_ignore_ascii_case("false") => ScalarKind::Bool(false),
        None if is_number() => ScalarKind::Number,
        None => ScalarKind::Text,
    })
}

/// An integer: `1_000`, `0x1f`, `0o17`, `0b11`. `007` is a number and not an integer: some read it
/// as an octal one.
fn unsigned(text: &str) -> Option<u64> {
    let (radix, digits) = match text.as_bytes() {
        [b'0', b'x' | b'X', ..] => (16, &text[2..]),
        [b'0', b'o' | b'O', ..] => (8, &text[2..]),
        [b'0', b'b' | b'B', ..] => (2, &text[2..]),
        [b'0', _, ..] => return None,
        _ => (10, text),
    };
    let is_digit = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    if !digits.bytes().all(is_digit) || digits.split('_').any(str::is_empty) {
        return None;
    }
    u64::from_str_radix(&digits.replace('_', ""), radix).ok()
}

fn is_core(tag: Option<&Tag>, kind: &str) -> bool {
    tag.is_none_or(|tag| tag.core_suffix() == Some(kind) || tag.original() == "!")
}

impl Extent {
    fn of(node: &Node) -> Self {
        let mut all = Self { nodes: 1, bytes: 0, height: 0 };
        match &node.value {
            Value::Null => {}
            Value::Scalar { text, .. } => all.bytes = text.len(),
            Value::List(items) => all.add(items.iter().map(|item| (0, item))),
            Value::Map(entries) => {
                all.add(entries.iter().map(|(key, value)| (key.text.len(), value)));
            }
        }
        all
    }

    /// Adds the children of a list or a map, each with the bytes of its name.
    fn add<'n>(&mut self, children: impl Iterator<Item = (usize, &'n Node)>) {
        self.height = 1;
        for (name_bytes, child) in children {
            let below = Self::of(child);
            self.nodes += below.nodes;
            self.bytes += name_bytes + below.bytes;
            self.height = self.height.max(below.height + 1);
        }
    }
}

/// The first name that an entry before it has too.
fn repeated(entries: &[(YamlKey, Node)]) -> Option<&YamlKey> {
    let mut seen = FxHashSet::default();
    entries.iter().map(|(key, _)| key).find(|key| !seen.insert(&key.text))
}

/// Adds to `entries` those of a map, or of a list of maps, whose names are not `seen`.
fn merge(
    entries: &mut Vec<(YamlKey, Node)>,
    seen: &mut FxHashSet<String>,
    node: Node,
) -> Result<(), Diagnostic> {
    match node.value {
        Value::Null => Ok(()),
        Value::List(items) => items.into_iter().try_for_each(|item| merge(entries, seen, item)),
        Value::Map(more) => {
            entries.extend(more.into_iter().filter(|(key, _)| seen.insert(key.text.clone())));
            Ok(())
        }
        Value::Scalar { .. } => {
            let message = "`<<` takes a map or a list of maps";
            Err(invalid(node.at, message, "write `<<: *name` with a map above"))
        }
    }
}

/// The parser does not know which map it reads. A key of a tier map may be an API key, so only
/// names of fields are quoted.
fn duplicate(key: &YamlKey) -> Diagnostic {
    let name = if schema::has_field(&key.text) { quoted(&key.text) } else { "a name".to_owned() };
    let message = format!("{name} is given twice in one map");
    failure(codes::DUPLICATE_FIELD, key.at, &message, "keep one of the two")
}

fn wrong_tag(at: Position) -> Diagnostic {
    invalid(at, "the tag (`!`) of this value does not fit it", "remove the tag")
}

fn too_many(at: Position) -> Diagnostic {
    let help = "write repeated values out, or generate fewer of them";
    failure(codes::TOO_BIG, at, "the file has too many aliases, anchors or values", help)
}

fn syntax(at: Position, message: &str) -> Diagnostic {
    invalid(at, message, "check the indentation, quotes and brackets here and just above")
}

fn invalid(at: Position, message: &str, help: &str) -> Diagnostic {
    failure(codes::SYNTAX, at, message, help)
}

fn failure(code: &'static Code, at: Position, message: &str, help: &str) -> Diagnostic {
    Diagnostic::new(code, Severity::Error, at, message, help)
}

fn at(marker: Marker) -> Position {
    let line = saturate(marker.line().max(1));
    Position { line, column: saturate(marker.col() + 1) }
}
