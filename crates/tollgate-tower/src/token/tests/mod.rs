//! Valid tokens, and forged ones.

mod keys;

use super::{Verifier, base64};
use ring::hmac;
use ring::rand::SystemRandom;
use ring::signature::{ECDSA_P256_SHA256_ASN1_SIGNING, ECDSA_P256_SHA256_FIXED_SIGNING};
use ring::signature::{EcdsaKeyPair, Ed25519KeyPair, KeyPair};
use tollgate_policy::facts::Unverified;
use tollgate_policy::settings::{Jwt, JwtAlgorithm};

const NOW_US: u64 = 1_794_744_000_000_000;
const NOW_S: u64 = NOW_US / 1_000_000;
const SECRET: &[u8] = b"a secret of thirty-two bytes, ok";

/// Signed once with a key that was then deleted; it expires in the year 2100.
const RS256: &str = include_str!("rs256.txt");
const RSA_N: &str = include_str!("rsa.n");
const RSA_PEM: &str = include_str!("rsa.pem");
/// A secret that is too short.
const RSA_1024: &str = include_str!("rsa-1024.json");
const RSA_1024_PEM: &str = include_str!("rsa-1024.pem");

/// The settings of a policy: only compiling a policy creates them.
fn jwt(fields: &str) -> Jwt {
    let file = format!("jwt: {{keys: k, {fields}}}");
    tollgate_policy::compile(file.as_bytes()).unwrap().settings.jwt.unwrap()
}

fn encode(bytes: &[u8]) -> String {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    let mut out = String::new();
    for chunk in bytes.chunks(3) {
        let mut three = [0; 4];
        three[1..=chunk.len()].copy_from_slice(chunk);
        let bits = u32::from_be_bytes(three);
        for place in 0..=chunk.len() {
            out.push(char::from(ALPHABET[(bits >> (18 - 6 * place) & 63) as usize]));
        }
    }
    out
}

/// Keys of all types, created for this run.
struct Keys {
    p256: EcdsaKeyPair,
    p256_asn1: EcdsaKeyPair,
    ed25519: Ed25519KeyPair,
    random: SystemRandom,
}

impl Keys {
    fn new() -> Self {
        let random = SystemRandom::new();
        let p256 = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &random).unwrap();
        let ed25519 = Ed25519KeyPair::generate_pkcs8(&random).unwrap();
        let pair = |algorithm| EcdsaKeyPair::from_pkcs8(algorithm, p256.as_ref(), &random).unwrap();
        Self {
            p256: pair(&ECDSA_P256_SHA256_FIXED_SIGNING),
            p256_asn1: pair(&ECDSA_P256_SHA256_ASN1_SIGNING),
            ed25519: Ed25519KeyPair::from_pkcs8(ed25519.as_ref()).unwrap(),
            random,
        }
    }

    fn jwks(&self) -> String {
        let point = self.p256.public_key().as_ref();
        let (x, y) = point[1..].split_at(32);
        let (x, y, ed) = (encode(x), encode(y), encode(self.ed25519.public_key().as_ref()));
        let secret = encode(SECRET);
        format!(
            r#"{{"keys":[
                {{"kty":"oct","kid":"oct","k":"{secret}"}},
                {{"kty":"RSA","kid":"rsa","n":"{RSA_N}","e":"AQAB"}},
                {{"kty":"EC","crv":"P-256","kid":"ec","x":"{x}","y":"{y}"}},
                {{"kty":"EC","crv":"P-521","kid":"other","x":"AA","y":"AA"}},
                {{"kty":"OKP","crv":"Ed25519","kid":"ed","x":"{ed}"}}
            ]}}"#
        )
    }

    fn sign(&self, algorithm: JwtAlgorithm, header: &str, claims: &str) -> String {
        let signed = format!("{}.{}", encode(header.as_bytes()), encode(claims.as_bytes()));
        let message = signed.as_bytes();
        let signature = match algorithm {
            JwtAlgorithm::Hs256 => {
                hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, SECRET), message).as_ref().to_vec()
            }
            JwtAlgorithm::Es256 => self.p256.sign(&self.random, message).unwrap().as_ref().to_vec(),
            JwtAlgorithm::EdDsa => self.ed25519.sign(message).as_ref().to_vec(),
            JwtAlgorithm::Rs256 => panic!("there is a token for that"),
        };
        format!("{signed}.{}", encode(&signature))
    }
}

const ALL: &str = "algorithms: [HS256, RS256, ES256, EdDSA]";

fn verifier(keys: &Keys, fields: &str) -> Verifier {
    Verifier::new(&jwt(fields), keys.jwks().as_bytes()).unwrap()
}

fn claim(verifier: &Verifier, token: &str, name: &str) -> Option<String> {
    let mut out = String::new();
    verifier.verify(token, NOW_US).ok()?.write(name, &mut out).ok()?;
    Some(out)
}

#[test]
fn signed_tokens_count() {
    let keys = Keys::new();
    let verifier = verifier(&keys, ALL);
    let claims =
        format!(r#"{{"sub":"42","n":7,"b":true,"a":{{"b":"c"}},"x.y":"z","exp":{}}}"#, NOW_S + 1);
    for (algorithm, name, kid) in [
        (JwtAlgorithm::Hs256, "HS256", "oct"),
        (JwtAlgorithm::Es256, "ES256", "ec"),
        (JwtAlgorithm::EdDsa, "EdDSA", "ed"),
    ] {
        for header in
            [format!(r#"{{"alg":"{name}"}}"#), format!(r#"{{"alg":"{name}","kid":"{kid}"}}"#)]
        {
            let token = keys.sign(algorithm, &header, &claims);
            assert_eq!(claim(&verifier, &token, "sub").as_deref(), Some("42"), "{header}");
        }
    }
    assert_eq!(claim(&verifier, RS256, "sub").as_deref(), Some("42"));
    let token = keys.sign(JwtAlgorithm::Hs256, r#"{"alg":"HS256"}"#, &claims);
    let shown = [("n", "7"), ("b", "true"), ("a.b", "c"), ("x.y", "z"), ("none", "")];
    for (name, value) in shown {
        assert_eq!(claim(&verifier, &token, name).as_deref(), Some(value), "{name}");
    }
    assert_eq!(claim(&verifier, &token, "a"), None, "an object is no value");
}

#[test]
fn keys_come_in_several_forms() {
    let keys = Keys::new();
    let pem = Verifier::new(&jwt("algorithms: [RS256]"), RSA_PEM.as_bytes()).unwrap();
    assert_eq!(claim(&pem, RS256, "sub").as_deref(), Some("42"));
    let one = format!(r#"{{"kty":"RSA","n":"{RSA_N}","e":"AQAB"}}"#);
    let one = Verifier::new(&jwt("algorithms: [RS256]"), one.as_bytes()).unwrap();
    assert_eq!(
        claim(&one, RS256, "sub").as_deref(),
        Some("42"),
        "a key without a name answers to any"
    );
    let secret = [SECRET, b"\n"].concat();
    let secret = Verifier::new(&jwt("algorithms: [HS256]"), &secret).unwrap();
    let token = keys.sign(JwtAlgorithm::Hs256, r#"{"alg":"HS256"}"#, r#"{"sub":"42"}"#);
    assert_eq!(claim(&secret, &token, "sub").as_deref(), Some("42"));
}

#[test]
fn bad_key_files_are_refused() {
    let wrong = |fields: &str, file: &str| {
        Verifier::new(&jwt(fields), file.as_bytes()).unwrap_err().to_string()
    };
    for (fields, file, why) in [
        ("algorithms: [HS256]", "short", "32 bytes"),
        ("algorithms: [HS256]", r#"{"kty":"oct","k":"AAAA"}"#, "32 bytes"),
        ("algorithms: [ES256]", RSA_PEM, "no key for ES256"),
        (
            "algorithms: [RS256]",
            "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----",
            "public key in PEM",
        ),
        (
            "algorithms: [RS256]",
            "-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----",
            "RSA, P-256",
        ),
        ("algorithms: [RS256]", "{\"keys\": [", "not JSON"),
        ("algorithms: [RS256]", "{", "neither a public key in PEM nor a JSON Web Key"),
        ("algorithms: [RS256]", "a secret for something else, or so", "jwt.algorithms"),
        ("algorithms: [HS256]", "", "the file is empty"),
        ("algorithms: [HS256]", "\r\n", "the file is empty"),
        ("algorithms: [HS256]", "short\n", "neither a public key in PEM nor a JSON Web Key"),
        ("algorithms: [HS256]", "short\n", "5 bytes"),
        ("algorithms: [RS256]", RSA_1024_PEM, "the RSA key has 1024 bits"),
        ("algorithms: [RS256]", RSA_1024, "the RSA key `old` has 1024 bits"),
        ("algorithms: [RS256]", r#"{"kty":"RSA","n":"AAAA","e":"AQAB"}"#, "has 0 bits"),
        ("algorithms: [RS256]", "-----BEGIN PUBLIC KEY-----\nAAAA\n", "a broken public key"),
        // A truncated key file, and a public key after a comment: these would be public "secrets".
        ("algorithms: [HS256]", "{ \"keys\": [{\"kty\": \"RSA\", \"n\": \"AAAAAAA", "not JSON"),
        ("algorithms: [HS256]", &format!("# our key\n{RSA_PEM}"), "no key for HS256"),
        ("algorithms: [RS256]", "{}", "no `kty`"),
        ("algorithms: [RS256]", r#"{"keys":{}}"#, "not a list"),
        (
            "algorithms: [EdDSA]",
            r#"{"kty":"OKP","crv":"Ed25519","x":"AAAA"}"#,
            "32 bytes of an Ed25519 key",
        ),
        ("algorithms: [ES256]", r#"{"kty":"EC","crv":"P-256","x":"AAAA","y":"AAAA"}"#, "P-256"),
        // Keys whose `use` or `alg` names another purpose.
        (
            "algorithms: [RS256]",
            r#"{"kty":"RSA","use":"enc","n":"AAAA","e":"AQAB"}"#,
            "no key for RS256",
        ),
        (
            "algorithms: [RS256]",
            r#"{"kty":"RSA","alg":"RS512","n":"AAAA","e":"AQAB"}"#,
            "no key for RS256",
        ),
    ] {
        let found = wrong(fields, file);
        assert!(found.contains(why), "{file}: {found}");
    }
}

/// An exponent with one wrong bit makes a key useless, so it is reported like a short key.
#[test]
fn rsa_keys_are_looked_at_before_they_are_used() {
    let rs256 = jwt("algorithms: [RS256]");
    for (exponent, is_good) in [("AQAB", true), ("AAEAAQ", true), ("Aw", true), ("AQ", false)] {
        let file = format!(r#"{{"kty":"RSA","n":"{RSA_N}","e":"{exponent}"}}"#);
        assert_eq!(Verifier::new(&rs256, file.as_bytes()).is_ok(), is_good, "{exponent}");
    }
    let n = base64::decode(RSA_N).unwrap();
    let file = format!(r#"{{"kty":"RSA","n":"{}","e":"AQAB"}}"#, encode(&[&[0], &n[..]].concat()));
    let zero = Verifier::new(&rs256, file.as_bytes()).unwrap();
    assert_eq!(claim(&zero, RS256, "sub").as_deref(), Some("42"), "a zero before the modulus");
    let body: String = RSA_PEM.lines().filter(|line| !line.starts_with('-')).collect();
    let der =
        base64::decode(body.replace('+', "-").replace('/', "_").trim_end_matches('=')).unwrap();
    let public = Verifier::new(&jwt("algorithms: [HS256]"), &der).unwrap_err().to_string();
    assert!(public.contains("public key in DER"), "{public}");
}

type Parts<'a> = &'a [&'a [u8]];

/// A line ending after a text is not part of the secret. Binary secrets keep all their bytes.
#[test]
fn secrets_are_what_their_file_holds() {
    let binary: Vec<u8> = (0..48).map(|byte| byte * 5).collect();
    let text = b"kkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkk";
    let cases: &[(Parts<'_>, Parts<'_>)] = &[
        (&[text], &[text]),
        (&[text, b"\n"], &[text]),
        (&[text, b"\r\n"], &[text]),
        (&[text, b"\n\n"], &[text, b"\n"]),
        (&[text, b"\r"], &[text, b"\r"]),
        (&[text, b" "], &[text, b" "]),
        (&["é".as_bytes(), text, b"\n"], &["é".as_bytes(), text]),
        (&[&binary, b"\n"], &[&binary, b"\n"]),
        (&[&binary, b"\r\n"], &[&binary, b"\r\n"]),
        (&[b"{", text], &[b"{", text]),
        (&[b"{", &binary, b"\n"], &[b"{", &binary, b"\n"]),
        (&[b"[", text], &[b"[", text]),
    ];
    for (file, secret) in cases {
        let verifier = Verifier::new(&jwt("algorithms: [HS256]"), &file.concat()).unwrap();
        let signed = format!("{}.{}", encode(br#"{"alg":"HS256"}"#), encode(br#"{"sub":"42"}"#));
        let key = hmac::Key::new(hmac::HMAC_SHA256, &secret.concat());
        let token = format!("{signed}.{}", encode(hmac::sign(&key, signed.as_bytes()).as_ref()));
        let found = claim(&verifier, &token, "sub");
        assert_eq!(found.as_deref(), Some("42"), "{}", file.concat().escape_ascii());
    }
}

#[test]
fn forged_tokens_do_not_count() {
    let keys = Keys::new();
    let verifier = verifier(&keys, ALL);
    let good = keys.sign(JwtAlgorithm::Hs256, r#"{"alg":"HS256"}"#, r#"{"sub":"42"}"#);
    assert!(verifier.verify(&good, NOW_US).is_ok());
    let (signed, signature) = good.rsplit_once('.').unwrap();
    let (header, claims) = signed.split_once('.').unwrap();
    let with = |header: &str, claims: &str, signature: &[u8]| {
        format!("{}.{}.{}", encode(header.as_bytes()), encode(claims.as_bytes()), encode(signature))
    };
    let by_secret = |secret: &[u8]| {
        let signed = format!("{}.{claims}", encode(br#"{"alg":"HS256"}"#));
        let tag = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, secret), signed.as_bytes());
        format!("{signed}.{}", encode(tag.as_ref()))
    };
    let hs = |header: &str| keys.sign(JwtAlgorithm::Hs256, header, r#"{"sub":"42"}"#);
    let point = keys.p256.public_key().as_ref();
    let asn1 = {
        let signed = format!("{}.{claims}", encode(br#"{"alg":"ES256"}"#));
        let signature = keys.p256_asn1.sign(&keys.random, signed.as_bytes()).unwrap();
        format!("{signed}.{}", encode(signature.as_ref()))
    };
    let (rs, _) = RS256.rsplit_once('.').unwrap();
    let attacks = [
        ("none", with(r#"{"alg":"none"}"#, r#"{"sub":"42"}"#, b"")),
        ("None", with(r#"{"alg":"None"}"#, r#"{"sub":"42"}"#, b"")),
        ("NONE and a signature", format!("{}.{claims}.{signature}", encode(br#"{"alg":"NONE"}"#))),
        ("hs256", hs(r#"{"alg":"hs256"}"#)),
        ("no alg", hs("{}")),
        ("alg is a list", hs(r#"{"alg":["HS256"]}"#)),
        ("a public key in PEM as the secret", by_secret(RSA_PEM.as_bytes())),
        ("a modulus as the secret", by_secret(&base64::decode(RSA_N).unwrap())),
        ("a point as the secret", by_secret(point)),
        ("an empty secret", by_secret(b"")),
        ("another secret", by_secret(b"another secret of 32 bytes, yes!")),
        ("HS256 with the name of the RSA key", hs(r#"{"alg":"HS256","kid":"rsa"}"#)),
        ("RS256 with the signature of HS256", hs(r#"{"alg":"RS256"}"#)),
        ("RS256 of another header", format!("{}.{}", rs, signature)),
        ("an unknown key", hs(r#"{"alg":"HS256","kid":"nobody"}"#)),
        ("a key's name that is none", hs(r#"{"alg":"HS256","kid":1}"#)),
        ("an extension that must be understood", hs(r#"{"alg":"HS256","crit":["x"]}"#)),
        ("changed claims", format!("{header}.{}.{signature}", encode(br#"{"sub":"43"}"#))),
        ("no signature", format!("{signed}.")),
        ("half a signature", format!("{signed}.{}", &signature[..20])),
        ("ES256 of zeros", with(r#"{"alg":"ES256"}"#, r#"{"sub":"42"}"#, &[0; 64])),
        ("ES256 in the other form", asn1),
        ("two parts", signed.to_owned()),
        ("four parts", format!("{good}.{signature}")),
        ("the other alphabet", good.replace(['-', '_'], "+") + "+"),
        ("claims that are a list", keys.sign(JwtAlgorithm::Hs256, r#"{"alg":"HS256"}"#, "[]")),
        ("claims that are no JSON", keys.sign(JwtAlgorithm::Hs256, r#"{"alg":"HS256"}"#, "{")),
        ("nothing", String::new()),
        ("dots", "..".into()),
        (
            "too long",
            keys.sign(
                JwtAlgorithm::Hs256,
                r#"{"alg":"HS256"}"#,
                &format!(r#"{{"sub":"{}"}}"#, "x".repeat(9_000)),
            ),
        ),
    ];
    for (what, token) in attacks {
        assert!(verifier.verify(&token, NOW_US).is_err(), "{what}: {token}");
    }
}

#[test]
fn good_signatures_in_the_wrong_place_do_not_count() {
    let keys = Keys::new();
    let good = keys.sign(JwtAlgorithm::Hs256, r#"{"alg":"HS256"}"#, r#"{"sub":"42"}"#);
    let only = verifier(&keys, "algorithms: [ES256]");
    // A valid key that is not in the set.
    assert_eq!(only.verify(&good, NOW_US), Err(Unverified::Algorithm), "HS256 where ES256 counts");
    assert_eq!(only.verify(RS256, NOW_US), Err(Unverified::Algorithm), "RS256 where ES256 counts");
    // A key inside the token.
    let ed = encode(keys.ed25519.public_key().as_ref());
    let header = format!(r#"{{"alg":"EdDSA","jwk":{{"kty":"OKP","crv":"Ed25519","x":"{ed}"}}}}"#);
    let stranger = Keys::new();
    let own = stranger.sign(JwtAlgorithm::EdDsa, &header, r#"{"sub":"42"}"#);
    let verifier = verifier(&keys, ALL);
    assert_eq!(verifier.verify(&own, NOW_US), Err(Unverified::Signature), "a key of its own");
}

#[test]
fn claims_about_the_token_itself_are_heeded() {
    let keys = Keys::new();
    let verifier = verifier(&keys, &format!("{ALL}, issuer: i, audience: a"));
    let (past, next, far) = (NOW_S - 5, NOW_S - 4, NOW_S + 6);
    let meant = r#""iss":"i","aud":"a""#;
    for (claims, counts) in [
        (meant.to_owned(), Ok(())),
        (r#""iss":"i","aud":["b","a"]"#.to_owned(), Ok(())),
        (r#""iss":"j","aud":"a""#.to_owned(), Err(Unverified::Issuer)),
        (r#""iss":["i"],"aud":"a""#.to_owned(), Err(Unverified::Issuer)),
        (r#""aud":"a""#.to_owned(), Err(Unverified::Issuer)),
        (r#""iss":"i""#.to_owned(), Err(Unverified::Audience)),
        (r#""iss":"i","aud":"ab""#.to_owned(), Err(Unverified::Audience)),
        (r#""iss":"i","aud":["b"]"#.to_owned(), Err(Unverified::Audience)),
        // Clocks differ: five seconds of leeway on either side.
        (format!(r#"{meant},"exp":{next}"#), Ok(())),
        (format!(r#"{meant},"exp":{next}.5"#), Ok(())),
        (format!(r#"{meant},"exp":{past}"#), Err(Unverified::Expired)),
        (format!(r#"{meant},"exp":"{next}""#), Err(Unverified::Claim)),
        (format!(r#"{meant},"exp":-1"#), Err(Unverified::Claim)),
        (format!(r#"{meant},"exp":null"#), Err(Unverified::Claim)),
        (format!(r#"{meant},"exp":1e30"#), Err(Unverified::Claim)),
        (format!(r#"{meant},"nbf":{past}"#), Ok(())),
        (format!(r#"{meant},"nbf":{}"#, NOW_S + 5), Ok(())),
        (format!(r#"{meant},"nbf":{far}"#), Err(Unverified::NotYetValid)),
        (format!(r#"{meant},"nbf":"{past}""#), Err(Unverified::Claim)),
    ] {
        let token = keys.sign(JwtAlgorithm::EdDsa, r#"{"alg":"EdDSA"}"#, &format!("{{{claims}}}"));
        assert_eq!(verifier.verify(&token, NOW_US).map(drop), counts, "{claims}");
    }
}

#[test]
fn leeway_is_as_long_as_the_file_says() {
    let keys = Keys::new();
    for (fields, late_s, counts) in [
        ("leeway: 0s", 0, false),
        ("leeway: 0s", -1, true),
        ("leeway: 1m", 59, true),
        ("leeway: 1m", 60, false),
    ] {
        let verifier = verifier(&keys, &format!("{ALL}, {fields}"));
        let exp = NOW_S.saturating_add_signed(-late_s);
        let token =
            keys.sign(JwtAlgorithm::EdDsa, r#"{"alg":"EdDSA"}"#, &format!(r#"{{"exp":{exp}}}"#));
        assert_eq!(verifier.verify(&token, NOW_US).is_ok(), counts, "{fields}, {late_s} s late");
    }
}

/// Spellings that services accept as one token are one token here.
#[test]
fn encodings_of_one_token_are_one_token() {
    let keys = Keys::new();
    let verifier = verifier(&keys, ALL);
    let good = keys.sign(JwtAlgorithm::Hs256, r#"{"alg":"HS256"}"#, r#"{"sub":"42"}"#);
    let (signed, signature) = good.rsplit_once('.').unwrap();
    // 32 bytes leave two bits of the last character unused: three more characters mean the same.
    let (rest, last) = signature.split_at(signature.len() - 1);
    let digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    let at = digits.find(last).unwrap();
    let mut spellings = vec![
        format!("{good}="),
        format!("{good}=="),
        format!("{signed}.{}", signature.replace('-', "+").replace('_', "/")),
    ];
    spellings.extend(digits[at..at + 4].chars().map(|other| format!("{signed}.{rest}{other}")));
    for token in spellings {
        assert_eq!(claim(&verifier, &token, "sub").as_deref(), Some("42"), "{token}");
    }
    // The issuer may have padded the signed parts.
    let encoded = |text: &str| {
        let text = encode(text.as_bytes());
        format!("{text:=<width$}", width = text.len().next_multiple_of(4))
    };
    let signed = format!("{}.{}", encoded(r#"{"alg":"HS256"}"#), encoded(r#"{"sub":"42","n":77}"#));
    assert!(signed.contains('='), "{signed}");
    let tag = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, SECRET), signed.as_bytes());
    let token = format!("{signed}.{}", encode(tag.as_ref()));
    assert_eq!(claim(&verifier, &token, "sub").as_deref(), Some("42"));
}

#[test]
fn bytes_are_read_as_services_read_them() {
    for text in ["", "AA", "AAA", "AAAA", "_-8"] {
        assert_eq!(encode(&base64::decode(text).expect(text)), text);
    }
    for (text, bytes) in
        [("AB", &[0][..]), ("AAB", &[0, 0]), ("AA==", &[0]), ("AA=", &[0]), ("/+8", &[0xff, 0xef])]
    {
        assert_eq!(base64::decode(text).as_deref(), Some(bytes), "{text}");
    }
    for text in ["A", "A A", "A=A", "é", "AAAAA"] {
        assert_eq!(base64::decode(text), None, "{text}");
    }
}
