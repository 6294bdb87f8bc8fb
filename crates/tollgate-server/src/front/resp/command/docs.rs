//! `COMMAND`: describes the commands to clients.

use super::{COMMANDS, CommandSpec, find};
use crate::front::resp::encode::{self, RespVersion};

/// `COMMAND [COUNT | LIST | INFO name.. | DOCS name..]`
pub(crate) fn command(out: &mut Vec<u8>, words: &[&[u8]], version: RespVersion) {
    let (word, names) = words.split_first().map_or((&b""[..], words), |(word, rest)| (*word, rest));
    let all = || COMMANDS.iter().collect::<Vec<_>>();
    match word.to_ascii_uppercase().as_slice() {
        b"" => write_commands(out, &all(), version),
        b"COUNT" => encode::integer(out, COMMANDS.len() as i64),
        b"LIST" => {
            encode::array(out, COMMANDS.len());
            COMMANDS.iter().for_each(|one| encode::bulk(out, one.name.as_bytes()));
        }
        b"INFO" if names.is_empty() => write_commands(out, &all(), version),
        b"INFO" => {
            encode::array(out, names.len());
            for name in names {
                match find(name) {
                    Some(known) => write_command(out, known, version),
                    None if version == RespVersion::Resp2 => out.extend_from_slice(b"*-1\r\n"),
                    None => encode::null(out, version),
                }
            }
        }
        b"DOCS" => {
            let named = || names.iter().filter_map(|name| find(name)).collect();
            write_docs(out, &if names.is_empty() { all() } else { named() }, version);
        }
        _ => encode::error(out, "ERR unknown subcommand. Try COUNT, LIST, INFO, DOCS."),
    }
}

fn write_commands(out: &mut Vec<u8>, commands: &[&CommandSpec], version: RespVersion) {
    encode::array(out, commands.len());
    commands.iter().for_each(|known| write_command(out, known, version));
}

/// Writes name, arity, flags, first key, last key and step. Categories, hints, keys and subcommands
/// are empty.
fn write_command(out: &mut Vec<u8>, known: &CommandSpec, version: RespVersion) {
    encode::array(out, 10);
    encode::bulk(out, known.name.as_bytes());
    encode::integer(out, known.arity);
    encode::set(out, version, known.flags.len());
    known.flags.iter().for_each(|flag| encode::simple(out, flag));
    (0..3).for_each(|_| encode::integer(out, known.key));
    encode::set(out, version, 0);
    (0..3).for_each(|_| encode::array(out, 0));
}

fn write_docs(out: &mut Vec<u8>, commands: &[&CommandSpec], version: RespVersion) {
    encode::map(out, version, commands.len());
    for known in commands {
        encode::bulk(out, known.name.as_bytes());
        encode::map(out, version, 2);
        for (word, text) in [("summary", known.summary), ("group", "generic")] {
            encode::bulk(out, word.as_bytes());
            encode::bulk(out, text.as_bytes());
        }
    }
}
