//! `COMMAND`: the commands, as clients ask for them.

use super::super::command::{ALL, Described, find};
use super::super::encode::{self, Version};

/// `COMMAND [COUNT | LIST | INFO name.. | DOCS name..]`
pub(super) fn command(out: &mut Vec<u8>, words: &[&[u8]], version: Version) {
    let (word, names) = words.split_first().map_or((&b""[..], words), |(word, rest)| (*word, rest));
    let all = || ALL.iter().collect::<Vec<_>>();
    match word.to_ascii_uppercase().as_slice() {
        b"" => each(out, &all(), version),
        b"COUNT" => encode::integer(out, ALL.len() as i64),
        b"LIST" => {
            encode::array(out, ALL.len());
            ALL.iter().for_each(|one| encode::bulk(out, one.word.as_bytes()));
        }
        b"INFO" if names.is_empty() => each(out, &all(), version),
        b"INFO" => {
            encode::array(out, names.len());
            for name in names {
                match find(name) {
                    Some(known) => entry(out, known, version),
                    None if version == Version::Two => out.extend_from_slice(b"*-1\r\n"),
                    None => encode::null(out, version),
                }
            }
        }
        b"DOCS" => {
            let known = match names.is_empty() {
                true => all(),
                false => names.iter().filter_map(|name| find(name)).collect(),
            };
            docs(out, &known, version);
        }
        _ => encode::error(out, "ERR unknown subcommand. Try COUNT, LIST, INFO, DOCS."),
    }
}

fn each(out: &mut Vec<u8>, commands: &[&Described], version: Version) {
    encode::array(out, commands.len());
    commands.iter().for_each(|known| entry(out, known, version));
}

/// Name, arity, flags, first key, last key, step; then categories, hints, keys and subcommands, of which there are none to tell.
fn entry(out: &mut Vec<u8>, known: &Described, version: Version) {
    encode::array(out, 10);
    encode::bulk(out, known.word.as_bytes());
    encode::integer(out, known.arity);
    encode::set(out, version, known.flags.len());
    known.flags.iter().for_each(|flag| encode::simple(out, flag));
    (0..3).for_each(|_| encode::integer(out, known.key));
    encode::set(out, version, 0);
    (0..3).for_each(|_| encode::array(out, 0));
}

fn docs(out: &mut Vec<u8>, commands: &[&Described], version: Version) {
    encode::map(out, version, commands.len());
    for known in commands {
        encode::bulk(out, known.word.as_bytes());
        encode::map(out, version, 2);
        for (word, text) in [("summary", known.summary), ("group", "generic")] {
            encode::bulk(out, word.as_bytes());
            encode::bulk(out, text.as_bytes());
        }
    }
}
