//! Detects the format of a key file: PEM, JSON Web Keys, or a shared secret.
//!
//! A possible public key is never used as a secret: everyone who has the public key could sign with
//! it. So a file with a PEM or DER key anywhere, or with the start of a JSON object, is read in
//! that format or refused.

use super::key::{SECRET_BYTES_MIN, VerifyingKey};
use super::{InvalidKeys, jwks, pem};

/// Reads the keys of a file. The file may be a secret only if `takes_secrets` is true.
pub(super) fn read(file: &[u8], takes_secrets: bool) -> Result<Vec<VerifyingKey>, InvalidKeys> {
    if file.trim_ascii().is_empty() {
        return Err(InvalidKeys("the file is empty".into()));
    }
    if let Some(begin) = find(file, b"-----BEGIN") {
        return Ok(vec![pem::read(&file[begin..])?]);
    }
    if is_json(file) {
        return jwks::read(file);
    }
    if pem::is_der(file) {
        let why = "a public key in DER; write it in PEM (openssl pkey -pubin -inform DER -pubout)";
        return Err(InvalidKeys(why.into()));
    }
    let secret = without_line_ending(file);
    let other = "neither a public key in PEM nor a JSON Web Key (Set)";
    if !takes_secrets {
        let why = format!("{other}, and secrets are for HS256, which jwt.algorithms does not name");
        return Err(InvalidKeys(why));
    }
    if secret.len() < SECRET_BYTES_MIN {
        return Err(InvalidKeys(format!(
            "{other}, and as a secret for HS256 too short: it has {} bytes, and {SECRET_BYTES_MIN} bytes are the least",
            secret.len()
        )));
    }
    Ok(vec![VerifyingKey::secret(secret, None)?])
}

/// Whether the file is a JSON object, or begins like one: a truncated key file is not a secret.
fn is_json(file: &[u8]) -> bool {
    let Some((b'{', rest)) = file.trim_ascii_start().split_first() else { return false };
    matches!(rest.trim_ascii_start(), [b'"', ..])
        || serde_json::from_slice::<serde_json::Value>(file).is_ok()
}

/// Removes the line ending that editors and `openssl rand -base64` append to a text secret. A
/// binary secret keeps all its bytes.
fn without_line_ending(file: &[u8]) -> &[u8] {
    let Some(line) = file.strip_suffix(b"\n") else { return file };
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    let is_text =
        |text: &str| text.chars().all(|one| !one.is_control() || matches!(one, '\t' | '\r' | '\n'));
    if str::from_utf8(line).is_ok_and(is_text) { line } else { file }
}

fn find(file: &[u8], wanted: &[u8]) -> Option<usize> {
    file.windows(wanted.len()).position(|window| window == wanted)
}
